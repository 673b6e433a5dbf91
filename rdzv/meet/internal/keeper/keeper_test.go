package keeper

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// owned starts a process and a keeper that it owns.
func owned(t *testing.T, dir, text string) (owner *exec.Cmd, stop func()) {
	t.Helper()
	owner = exec.Command("cat")
	in, err := owner.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		in.Close()
		_ = owner.Wait()
	})
	t.Cleanup(stop)
	if err := Start(dir, "socket", owner.Process.Pid, text); err != nil {
		t.Fatal(err)
	}
	return owner, stop
}

// keepers returns the pids of an owner's keepers that have not ended. A keeper that a test has
// started stays a child of the test binary, as a zombie after its end.
func keepers(owner int) (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, _ := os.ReadFile(file)
		if strings.HasPrefix(string(line), Name+"\x00"+OwnerFlag+strconv.Itoa(owner)+"\x00") {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

func TestKeeper(t *testing.T) {
	text := strings.Repeat("a secret ", 100)
	t.Setenv("A_SECRET", "of the agent")
	leak, err := os.Open(os.DevNull) // stands for a descriptor that the launcher leaks
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	clearCloseOnExec(t, leak)
	dir := longDir(t)
	owner, stop := owned(t, dir, text)
	for range 3 {
		if got, err := Ask(dir, "socket"); err != nil || got != text {
			t.Fatalf("the keeper sent %q, %v", got, err)
		}
	}
	pids := keepers(owner.Process.Pid)
	if len(pids) != 1 {
		t.Fatalf("keepers: %q", pids)
	}
	environ, err := os.ReadFile("/proc/" + pids[0] + "/environ")
	if err != nil || bytes.Contains(environ, []byte("SECRET")) {
		t.Errorf("the keeper's environment is %q, %v", environ, err)
	}
	files, _ := filepath.Glob("/proc/" + pids[0] + "/fd/*")
	for _, file := range files {
		to, err := os.Readlink(file)
		if err == nil && to == os.DevNull && filepath.Base(file) != "2" {
			t.Errorf("the keeper has inherited descriptor %s", filepath.Base(file))
		}
	}
	stop()
	look, late := time.NewTicker(time.Millisecond), time.After(20*time.Second)
	defer look.Stop()
	for len(keepers(owner.Process.Pid)) > 0 {
		select {
		case <-look.C:
		case <-late:
			t.Fatal("the keeper has not ended with its owner")
		}
	}
	if got, err := Ask(dir, "socket"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("after the owner's end the answer is %q, %v, want no such file", got, err)
	}
}

// A keeper that was killed leaves its file.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	owner, _ := owned(t, dir, "text")
	if err := Start(dir, "socket", owner.Process.Pid, "x"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second keeper: %v, want EADDRINUSE", err)
	}
	if Killed(dir, "socket") || Killed(dir, "none") {
		t.Error("Killed = true for a running keeper, or for none")
	}
	for _, pid := range keepers(owner.Process.Pid) {
		pid, _ := strconv.Atoi(pid)
		syscall.Kill(pid, syscall.SIGKILL)
		syscall.Wait4(pid, nil, 0, nil)
	}
	got, err := Ask(dir, "socket")
	if !errors.Is(err, syscall.ECONNREFUSED) || !Killed(dir, "socket") {
		t.Errorf("the answer of a killed keeper is %q, %v", got, err)
	}
}

// longDir returns a directory whose path is longer than the address of a Unix socket.
func longDir(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Without a pidfd, the end of the owner is detected through /proc.
func TestOwnerWithoutPidfd(t *testing.T) {
	owner, stop := owned(t, t.TempDir(), "text")
	o, err := openOwner(strconv.Itoa(owner.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer o.stat.Close()
	o.pidfd = -1
	if o.ended() {
		t.Fatal("ended() = true for a running owner")
	}
	stop()
	if ended, connected := o.wait(-1); !ended || connected {
		t.Errorf("wait = %t, %t, want true, false", ended, connected)
	}
	if _, err := openOwner(strconv.Itoa(owner.Process.Pid)); err == nil {
		t.Error("openOwner succeeds for a process that has ended")
	}
}

func TestTooLong(t *testing.T) {
	if err := Start(t.TempDir(), "socket", os.Getpid(), strings.Repeat("x", 1<<20)); err == nil {
		t.Error("Start accepts a text that is larger than a pipe")
	}
}

func clearCloseOnExec(t *testing.T, f *os.File) {
	t.Helper()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETFD, 0)
	})
	if err != nil {
		t.Fatal(err)
	}
}
