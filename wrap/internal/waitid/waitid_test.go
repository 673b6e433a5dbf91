package waitid

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestSize(t *testing.T) {
	if own, its := unsafe.Sizeof(siginfo{}), unsafe.Sizeof(unix.Siginfo{}); own != its {
		t.Errorf("siginfo has %d bytes, unix.Siginfo %d", own, its)
	}
}

func TestChanges(t *testing.T) {
	if _, err := Any(unix.WEXITED); !errors.Is(err, unix.ECHILD) || !HaveNone() {
		t.Errorf("without children: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const events = unix.WEXITED | unix.WSTOPPED | unix.WCONTINUED
	pid := cmd.Process.Pid
	if c, err := Any(events); c.PID != 0 || err != nil || HaveNone() {
		t.Errorf("a child that runs has changed: %+v, %v", c, err)
	}
	for _, c := range []struct {
		signal syscall.Signal
		code   int32
	}{{syscall.SIGSTOP, 5}, {syscall.SIGCONT, 6}, {syscall.SIGKILL, 2}} { // CLD_STOPPED and others
		_ = cmd.Process.Signal(c.signal)
		want := Change{pid, c.code}
		if got := await(t, func() (Change, error) { return Any(events | unix.WNOWAIT) }); got != want {
			t.Errorf("after %v: %+v, want %+v", c.signal, got, want)
		}
		if got := await(t, func() (Change, error) { return Of(pid, events) }); got != want {
			t.Errorf("after %v it is %+v, want %+v", c.signal, got, want)
		}
	}
	if _, err := Of(pid, events); !errors.Is(err, unix.ECHILD) || !HaveNone() {
		t.Errorf("after it was reaped: %v", err)
	}
	_ = cmd.Wait() // nothing is left to wait for
}

// await returns the next change.
func await(t *testing.T, ask func() (Change, error)) Change {
	t.Helper()
	for range 2000 {
		c, err := ask()
		if err != nil {
			t.Fatal(err)
		}
		if c.PID != 0 {
			return c
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no change after 20 s")
	return Change{}
}
