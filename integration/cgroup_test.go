package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// memoryGroup makes a cgroup with so little memory, for as long as the test lasts. It takes root, or sudo.
func memoryGroup(t *testing.T, limit int) string {
	t.Helper()
	name := fmt.Sprintf("rdzv-integration-%d", os.Getpid())
	group, script := filepath.Join("/sys/fs/cgroup", name), `mkdir "$0" && echo "$1" > "$0/memory.max" && echo 0 > "$0/memory.swap.max"; chown -R "$2" "$0"`
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil { // version 1
		group, script = filepath.Join("/sys/fs/cgroup/memory", name), `mkdir "$0" && echo "$1" > "$0/memory.limit_in_bytes"; chown -R "$2" "$0"`
	}
	asRoot(t, "sh", "-c", script, group, strconv.Itoa(limit), strconv.Itoa(os.Geteuid()))
	t.Cleanup(func() {
		if !eventually(20*time.Second, func() bool { return exec.Command("rmdir", group).Run() == nil }) {
			asRoot(t, "rmdir", group)
		}
	})
	return group
}

func asRoot(t *testing.T, argv ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		argv = append([]string{"sudo", "-n"}, argv...)
	}
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
}
