package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"rdzv/internal/proctest"
)

// memoryGroup makes a cgroup with a limit of memory, until the test ends. It needs root or sudo.
func memoryGroup(t *testing.T, limit int) string {
	t.Helper()
	name := fmt.Sprintf("rdzv-integration-%d", os.Getpid())
	group := filepath.Join("/sys/fs/cgroup", name)
	script := `mkdir "$0" && echo "$1" > "$0/memory.max" && echo 0 > "$0/memory.swap.max"
		chown -R "$2" "$0"`
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil { // cgroup version 1
		group = filepath.Join("/sys/fs/cgroup/memory", name)
		script = `mkdir "$0" && echo "$1" > "$0/memory.limit_in_bytes"; chown -R "$2" "$0"`
	}
	proctest.RunAsRoot(t, "sh", "-c", script, group, strconv.Itoa(limit), strconv.Itoa(os.Geteuid()))
	t.Cleanup(func() {
		empty := func() bool {
			list, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
			return err == nil && len(list) == 0
		}
		if !eventually(20*time.Second, empty) {
			t.Errorf("processes are left in %s", group)
		}
		proctest.RunAsRoot(t, "rmdir", group)
	})
	return group
}
