package wrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/proctest"
)

// becomesRoot is a program that its user may run but not signal, like sudo.
var becomesRoot = role("becomes root", func() {
	if err := syscall.Setresuid(0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	fmt.Println("root")
	pause()
})

var _ = role("agent of root", func() {
	w := child(becomesRoot)
	w.Path = os.Getenv(argEnv)
	became, out, err := os.Pipe()
	if err != nil {
		fmt.Println(err)
	}
	w.Stdout = out
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		became.Read(make([]byte, 1))
		cancel()
	}()
	_, err = Run(ctx, Tree{Workers: []Worker{w}, Grace: time.Millisecond, Source: Signals()})
	var survivors *SurvivorError
	fmt.Println(errors.As(err, &survivors), err)
})

// TestCannotKill: Run returns the processes that its user may not kill.
func TestCannotKill(t *testing.T) {
	nothingLeft(t)
	sudo := testBinary(t)
	proctest.RunAsRoot(t, "chown", "root", sudo)
	proctest.RunAsRoot(t, "chmod", "u+s", sudo)
	out, l := lines(t)
	t.Cleanup(func() {
		killMarked(t)
		eventually(t, "all have ended", func() bool { return len(marked(marker(t))) == 0 })
	})
	cmd := exec.Command(testBinary(t))
	cmd.Env = []string{
		roleEnv + "=agent of root", markerEnv + "=" + marker(t),
		argEnv + "=" + sudo,
	}
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = out, out
	if os.Getuid() == 0 {
		nobody := &syscall.Credential{Uid: 65534, Gid: 65534}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: nobody}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	got := l.next()
	var pid int
	_, err := fmt.Sscanf(got, "true cannot kill process %d (test)", &pid)
	if err != nil || dead(pid) {
		t.Errorf("agent printed %q (%v); process %d is dead: %v", got, err, pid, dead(pid))
	}
	if pid > 0 { // without CAP_SYS_PTRACE nobody sees its marker
		proctest.RunAsRoot(t, "sh", "-c", fmt.Sprint("kill -9 ", pid))
	}
}

// testBinary returns a copy of the test binary that every user can execute.
func testBinary(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "wrap")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	file := dir + "/test"
	for _, err := range []error{
		os.WriteFile(file, text, 0o755), os.Chmod(dir, 0o755), os.Chmod(file, 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return file
}
