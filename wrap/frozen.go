package wrap

import (
	"time"

	"rdzv/wrap/internal/watchdog"
)

// frozenStep is how often a stopped watchdog is checked again.
const frozenStep = time.Second

// childChanged is called when the watchdog may have been stopped or continued, which the kernel
// reports to this process, its parent, with SIGCHLD. The channel is that of the last check.
func (g *guard) childChanged(again <-chan time.Time) <-chan time.Time {
	if again != nil && watchdog.Stopped(g.process.Pid) {
		return again
	}
	return g.checkFrozen()
}

// checkFrozen is called then, and each time that the returned channel delivers. It kills a watchdog
// that is stopped for lateMargin: killLeft then kills the tree. A step counts as frozenStep, also
// if this process was stopped meanwhile.
func (g *guard) checkFrozen() (again <-chan time.Time) {
	switch {
	case !watchdog.Stopped(g.process.Pid):
		g.frozen = 0
		return nil
	case g.frozen >= lateMargin:
		_ = g.process.Kill()
		return nil
	}
	g.frozen += frozenStep
	return time.After(frozenStep)
}
