package meet

import (
	"testing"

	"rdzv/internal/proctest"
	"rdzv/rdzv/meet/internal/keeper"
)

// The keeper, here of process 0, runs before most packages are initialised.
func TestKeeperRunsFirst(t *testing.T) {
	proctest.CheckRunsFirst(t, keeper.Name, "0",
		"/nonexistent")
}
