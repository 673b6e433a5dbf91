package wrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// descendant starts a chain of as many processes as its argument says, the last of which watches its ancestors up to
// the one whose argv[0] is "daemon", unless that is 0.
var descendant = role("descendant", func() {
	n, _ := strconv.Atoi(os.Getenv(argEnv))
	if n > 0 {
		fmt.Println("pid", os.Getpid())
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), argEnv+"="+strconv.Itoa(n-1))
		cmd.Stdout = os.Stdout
		cmd.Start()
		cmd.Wait()
		pause()
	}
	top, _ := strconv.Atoi(os.Getenv("WRAP_TEST_TOP"))
	asked := 0
	a := Ancestors(func(name string) bool { asked++; return asked == 2*top })
	if a == nil {
		fmt.Println("none")
		return
	}
	if os.Getenv("WRAP_TEST_DAEMON_ALONE") != "" {
		a.KeepDaemon()
	}
	if os.Getenv("WRAP_TEST_NO_PIDFD") != "" {
		a.Close()
	}
	fmt.Println("watching", len(a.Line))
	who, err := a.Wait(context.Background())
	fmt.Println("ended", who.PID, who.Name != "", err)
})

func startChain(t *testing.T, n, top int, env ...string) (lineReader, []int) {
	t.Helper()
	out, l := lines(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append([]string{argEnv + "=" + strconv.Itoa(n), "WRAP_TEST_TOP=" + strconv.Itoa(top), roleEnv + "=" + descendant, markerEnv + "=" + marker(t)}, env...)
	cmd.Stdout = out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // one of them will be stopped, which may bring SIGHUP to its group
	startMarked(t, cmd)
	var pids []int
	for range n {
		pid, _ := strconv.Atoi(strings.TrimPrefix(l.next(), "pid "))
		pids = append(pids, pid)
	}
	return l, pids // from the oldest on
}

func TestAncestors(t *testing.T) {
	for _, env := range []string{"", "WRAP_TEST_NO_PIDFD=1"} {
		for victim := range 3 {
			t.Run(fmt.Sprint(victim, env), func(t *testing.T) {
				nothingLeft(t)
				l, pids := startChain(t, 4, 3, env) // the oldest of the four is beyond the daemon
				l.want("watching 3")
				syscall.Kill(pids[0], syscall.SIGSTOP) // as a parent it would only pause anyway
				syscall.Kill(pids[1+victim], syscall.SIGKILL)
				l.want(fmt.Sprintf("ended %d true <nil>", pids[1+victim]))
			})
		}
	}
}

// TestDaemonAlone: those between may end.
func TestDaemonAlone(t *testing.T) {
	nothingLeft(t)
	l, pids := startChain(t, 4, 3, "WRAP_TEST_DAEMON_ALONE=1")
	l.want("watching 1")
	syscall.Kill(pids[0], syscall.SIGSTOP)
	syscall.Kill(pids[2], syscall.SIGKILL)
	syscall.Kill(pids[1], syscall.SIGKILL)
	l.want(fmt.Sprintf("ended %d true <nil>", pids[1]))
}

func TestNoSuchAncestor(t *testing.T) {
	nothingLeft(t)
	l, _ := startChain(t, 2, 1000000)
	l.want("none")
}

func TestAncestorsEnd(t *testing.T) {
	nothingLeft(t)
	a := Ancestors(func(string) bool { return true })
	if a == nil || len(a.Line) != 1 || a.Line[0].PID != os.Getppid() {
		t.Fatalf("%+v", a)
	}
	defer a.Close()
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(reason) })
	if who, err := a.Wait(ctx); err != reason {
		t.Errorf("%+v, %v", who, err)
	}
}

// TestAncestorNames: an ancestor is known by its name and by that of its program.
func TestAncestorNames(t *testing.T) {
	var names []string
	if a := Ancestors(func(name string) bool { names = append(names, name); return false }); a != nil {
		t.Fatalf("%+v", a)
	}
	parent, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", os.Getppid()))
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", os.Getppid()))
	if len(names) < 2 || names[0]+"\n" != string(parent) || !strings.HasSuffix(exe, "/"+names[1]) {
		t.Errorf("%q; parent %q, %q", names, parent, exe)
	}
}
