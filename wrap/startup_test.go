package wrap

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"rdzv/internal/proctest"
	"rdzv/wrap/internal/watchdog"
)

// TestWatchdogStartsBeforeHeavyPackages: only few packages are initialised before the watchdog
// runs. Its stdin is at its end, as from an agent that has ended.
func TestWatchdogStartsBeforeHeavyPackages(t *testing.T) {
	args := watchdog.Args(os.Getpid(), 0, false)
	for name, argv0 := range map[string]string{
		"its own name":        args[0],
		"path of the program": os.Args[0], // as binfmt_misc without the flag P sets it (qemu-user)
	} {
		t.Run(name, func(t *testing.T) {
			proctest.CheckRunsFirst(t, append([]string{argv0}, args[1:]...)...)
		})
	}
}

// TestGuardEndsAtOnce: the error says what has not acted as holder and watchdog.
func TestGuardEndsAtOnce(t *testing.T) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	g := &guard{socket: pollable(ends[0])}
	defer g.socket.Close()
	unix.Close(ends[1])
	g.holder, err = os.StartProcess("/bin/sh", []string{"sh", "-c", "exit 2"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	const want = "/proc/self/exe, which was executed as its parent \"tree-holder\", has ended: " +
		"exit status 2"
	if _, err := g.awaitUp(); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestSubreaperError(t *testing.T) {
	const want = "cannot become a child subreaper: prctl(PR_SET_CHILD_SUBREAPER): invalid argument: " +
		"Linux has it since 3.4, qemu-user 7.2 does not"
	if err := subreaperError(unix.EINVAL); err.Error() != want || !errors.Is(err, unix.EINVAL) {
		t.Errorf("error %v, want %s", err, want)
	}
}
