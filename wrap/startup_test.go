package wrap

import (
	"os"
	"testing"

	"rdzv/internal/proctest"
	"rdzv/wrap/internal/watchdog"
)

// TestWatchdogStartsBeforeHeavyPackages: only few packages are initialised before the watchdog
// runs. Its stdin is at its end, as from an agent that has ended.
func TestWatchdogStartsBeforeHeavyPackages(t *testing.T) {
	proctest.CheckRunsFirst(t, watchdog.Args(os.Getpid(), 0, false)...)
}
