package starter

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
)

// suspend stops the workers of this process, and all that they have started, or continues them. The
// agent and its runners, which are its children, go on: the other nodes would take it for lost.
func suspend(proc fs.FS, stop bool) {
	signal := syscall.SIGCONT
	if stop {
		signal = syscall.SIGSTOP
	}
	signalled := map[int]bool{}
	for more := true; more; { // what a process has started before it was stopped
		more = false
		runners, _ := procfs.Children(proc, os.Getpid())
		for _, runner := range runners {
			for _, pid := range descendants(proc, runner) {
				if !signalled[pid] {
					more = unix.Kill(pid, signal) == nil || more
					signalled[pid] = true
				}
			}
		}
	}
}

// descendants are those of a process, without itself.
func descendants(proc fs.FS, pid int) (all []int) {
	children, _ := procfs.Children(proc, pid)
	for _, child := range children {
		all = append(append(all, child), descendants(proc, child)...)
	}
	return all
}
