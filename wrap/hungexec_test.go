package wrap

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/boottime"
	"rdzv/internal/procfs"
	"rdzv/internal/proctest"
)

// TestHungExec: the program of a worker is on a file system that does not respond, so that its start
// hangs in the kernel. What ends the tree ends it nevertheless, soon.
func TestHungExec(t *testing.T) {
	const leaseGrace, most = time.Second, 15 * time.Second
	for _, c := range []struct {
		name string
		end  func(*Lease)
	}{
		{"lease over", func(l *Lease) { l.Renew(boottime.Now() + leaseGrace/2) }},
		{"expired", (*Lease).Expire},
		{"revoked", (*Lease).Revoke},
	} {
		t.Run(c.name, func(t *testing.T) {
			nothingLeft(t)
			dir := t.TempDir()
			device := proctest.MountFUSE(t, dir, unix.S_IFDIR)
			t.Cleanup(func() {
				_ = unix.Unmount(dir, unix.MNT_DETACH)
				_ = unix.Close(device)
			})
			out, l := lines(t)
			first, hangs := sh(t, `trap "" TERM; echo ready; while :; do sleep 0.05; done`), sh(t, "")
			first.Stdout, hangs.Path = out, filepath.Join(dir, "program")
			var lease Lease
			r := begin(t, Tree{
				Workers: []Worker{first, hangs}, Grace: time.Hour, Lease: &lease, LeaseGrace: leaseGrace,
			})
			l.want("ready")
			eventually(t, "the second worker is being started", func() bool {
				return procfs.FindDescendant(procfs.System, os.Getpid(), executes) != 0
			})
			began := time.Now()
			c.end(&lease)
			results, err := r.wait()
			if took := time.Since(began); took > most {
				t.Errorf("Run returned after %v, want %v at most", took, most)
			}
			if results[0].Signal != syscall.SIGKILL || !results[0].Stopped {
				t.Errorf("Run = %+v, %v, want that the first worker was killed", results, err)
			}
		})
	}
}

// executes tells whether a process is in execve(2).
func executes(pid int) bool {
	call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
	return err == nil && strings.HasPrefix(string(call), fmt.Sprint(unix.SYS_EXECVE, " "))
}
