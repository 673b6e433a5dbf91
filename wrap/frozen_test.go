package wrap

import (
	"os/exec"
	"syscall"
	"testing"

	"rdzv/wrap/internal/watchdog"
)

// Each time that a watchdog is stopped counts from the beginning.
func TestContinuedWatchdogIsNotFrozen(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	g := &guard{process: cmd.Process}
	signal := func(s syscall.Signal, stopped bool) {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the watchdog's state changes", func() bool { return watchdog.Stopped(cmd.Process.Pid) == stopped })
	}
	signal(syscall.SIGSTOP, true)
	again := g.childChanged(nil)
	if again == nil || g.frozen != frozenStep || g.childChanged(again) != again {
		t.Fatalf("a watchdog that is stopped is checked again: %v, after %v", again != nil, g.frozen)
	}
	signal(syscall.SIGCONT, false)
	if again = g.childChanged(again); again != nil || g.frozen != 0 {
		t.Errorf("a watchdog that is continued is checked again: %v, after %v", again != nil, g.frozen)
	}
}
