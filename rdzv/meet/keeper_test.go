package meet

import (
	"os"
	"testing"

	"rdzv/internal/proctest"
	"rdzv/rdzv/meet/internal/keeper"
)

// The keeper, here of process 0, runs before most packages are initialised, also if argv[0] is the
// path of the program, as binfmt_misc without the flag P sets it (qemu-user).
func TestKeeperRunsFirst(t *testing.T) {
	proctest.CheckRunsFirst(t, keeper.Name, keeper.OwnerFlag+"0", "/nonexistent")
	proctest.CheckRunsFirst(t, os.Args[0], keeper.OwnerFlag+"0", "/nonexistent")
}
