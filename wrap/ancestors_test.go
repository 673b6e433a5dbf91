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

// descendant starts a chain of as many processes as its argument says. The last one watches as many
// of its ancestors as WRAP_TEST_TOP says.
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
	calls := 0 // two for each ancestor
	a := Ancestors(func(name string) bool { calls++; return calls == 2*top })
	if a == nil {
		fmt.Println("none")
		return
	}
	if os.Getenv("WRAP_TEST_KEEP_DAEMON") != "" {
		a.KeepDaemon()
	}
	if os.Getenv("WRAP_TEST_NO_PIDFD") != "" {
		a.Close()
	}
	fmt.Println("watching", len(a.chain))
	who, err := a.Wait(context.Background())
	fmt.Println("ended", who.PID, who.Name != "", err)
})

// startChain starts n descendants, the last of which watches top of its ancestors, and returns
// their pids, the oldest first.
func startChain(t *testing.T, n, top int, env ...string) (lineReader, []int) {
	t.Helper()
	out, l := lines(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append([]string{
		roleEnv + "=" + descendant, argEnv + "=" + strconv.Itoa(n),
		"WRAP_TEST_TOP=" + strconv.Itoa(top), markerEnv + "=" + marker(t),
	}, env...)
	cmd.Stdout = out
	// One of them will be stopped, so that its process group may receive SIGHUP.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	startMarked(t, cmd)
	var pids []int
	for range n {
		pid, _ := strconv.Atoi(strings.TrimPrefix(l.next(), "pid "))
		pids = append(pids, pid)
	}
	return l, pids
}

func TestAncestors(t *testing.T) {
	for _, env := range []string{"", "WRAP_TEST_NO_PIDFD=1"} {
		for victim := range 3 {
			t.Run(fmt.Sprint(victim, env), func(t *testing.T) {
				nothingLeft(t)
				l, pids := startChain(t, 4, 3, env) // the oldest one is the parent of the daemon
				l.want("watching 3")
				syscall.Kill(pids[0], syscall.SIGSTOP)
				syscall.Kill(pids[1+victim], syscall.SIGKILL)
				l.want(fmt.Sprintf("ended %d true <nil>", pids[1+victim]))
			})
		}
	}
}

// TestKeepDaemon: Wait ignores the end of the ancestors below the daemon.
func TestKeepDaemon(t *testing.T) {
	nothingLeft(t)
	l, pids := startChain(t, 4, 3, "WRAP_TEST_KEEP_DAEMON=1")
	l.want("watching 1")
	syscall.Kill(pids[0], syscall.SIGSTOP)
	syscall.Kill(pids[2], syscall.SIGKILL)
	syscall.Kill(pids[1], syscall.SIGKILL)
	l.want(fmt.Sprintf("ended %d true <nil>", pids[1]))
}

// TestNoDaemon: no ancestor is accepted.
func TestNoDaemon(t *testing.T) {
	nothingLeft(t)
	l, _ := startChain(t, 2, 1000000)
	l.want("none")
}

// TestWaitEndsWithContext: Wait returns the cause of the end of its context.
func TestWaitEndsWithContext(t *testing.T) {
	nothingLeft(t)
	a := Ancestors(func(string) bool { return true })
	if a == nil || len(a.chain) != 1 || a.chain[0].PID != os.Getppid() {
		t.Fatalf("Ancestors = %+v, want the parent, pid %d", a, os.Getppid())
	}
	defer a.Close()
	reason := errors.New("test ended the context")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(reason) })
	if who, err := a.Wait(ctx); err != reason {
		t.Errorf("Wait = %+v, %v, want error %v", who, err, reason)
	}
}

// TestAncestorNames: isDaemon is called with the name of an ancestor and with that of its
// executable.
func TestAncestorNames(t *testing.T) {
	var names []string
	a := Ancestors(func(name string) bool { names = append(names, name); return false })
	if a != nil {
		t.Fatalf("Ancestors = %+v, want nil", a)
	}
	parent, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", os.Getppid()))
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", os.Getppid()))
	if len(names) < 2 || names[0]+"\n" != string(parent) || !strings.HasSuffix(exe, "/"+names[1]) {
		t.Errorf("isDaemon called with %q; parent has name %q, executable %q", names, parent, exe)
	}
}
