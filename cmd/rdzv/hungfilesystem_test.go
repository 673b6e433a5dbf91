package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/proctest"
)

// hungFileSystem mounts a file system that does not respond: FUSE without a server.
func hungFileSystem(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	device := proctest.MountFUSE(t, dir, unix.S_IFDIR)
	t.Cleanup(func() {
		unix.Close(device)
		fatalIf(t, unix.Unmount(dir, unix.MNT_DETACH))
	})
	return dir
}

// awaitBlocked waits until some threads of the process have been in an uninterruptible wait for
// 0.1 s.
func awaitBlocked(t *testing.T, pid, threads int) {
	t.Helper()
	limit := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for times := 0; times < 10; {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("rdzv does not wait for the file system")
		}
		times++
		if blockedThreads(pid) < threads {
			times = 0
		}
	}
}

func blockedThreads(pid int) (n int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), ") D ") {
			n++
		}
	}
	return n
}
