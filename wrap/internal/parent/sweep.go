package parent

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"syscall"
	"time"

	"rdzv/internal/procfs"
	"rdzv/wrap/internal/waitid"
)

const (
	// sweepWait is how long no process may die of SIGKILL before the rest are left.
	sweepWait = 3 * time.Second
	// sweepInterval is how often sweep checks whether they have, and whether there are others.
	sweepInterval = time.Millisecond
)

// childrenExcept returns the children of this process except some. If they cannot be listed, a
// later sweep reports that.
func childrenExcept(some map[int]bool) map[int]bool {
	pids, _ := procfs.Children(procfs.System, os.Getpid())
	set := map[int]bool{}
	for _, pid := range pids {
		if !some[pid] {
			set[pid] = true
		}
	}
	return set
}

// sweep kills the processes that this process has adopted from the runner, which has died: all its
// children except those that are unrelated, with all below them. Nothing else reaps these
// children, so their pids cannot belong to other processes; what they create meanwhile becomes a
// child of this process when they die.
func (r *Runner) sweep() {
	r.Statuses = map[int]syscall.WaitStatus{}
	empty := 0 // how often in succession there were none: one that is adopted meanwhile may be missing
	until, fewest := time.Now().Add(sweepWait), math.MaxInt
	for ; ; time.Sleep(sweepInterval) {
		left, err := r.kill()
		if err == nil && len(left) < fewest {
			until, fewest = time.Now().Add(sweepWait), len(left)
		}
		for _, pid := range left {
			var status syscall.WaitStatus
			if got, _ := syscall.Wait4(pid, &status, syscall.WNOHANG, nil); got == pid {
				r.Statuses[pid] = status
			}
		}
		if empty++; len(left) > 0 || err != nil {
			empty = 0
		}
		switch {
		case empty > 2, waitid.HaveNone():
			return
		case time.Now().Before(until):
		case err != nil:
			r.Err = fmt.Errorf("cannot list the processes that the workers left: %w", err)
			return
		default:
			r.Left = left
			return
		}
	}
}

// kill sends SIGKILL to the processes that this process has adopted from the runner, and to all
// below them, and returns the former.
func (r *Runner) kill() (left []int, err error) {
	left = r.killer.Kill(func() (pids []int) {
		pids, err = r.related()
		return pids
	})
	return left, err
}

// related are the children of this process that were the runner's.
func (r *Runner) related() ([]int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	runners.Lock()
	defer runners.Unlock()
	pids, err := procfs.Children(procfs.System, os.Getpid())
	set := map[int]bool{}
	for _, pid := range pids {
		if !runners.pids[pid] && !r.unrelated[pid] {
			set[pid] = true
		}
	}
	return slices.Sorted(maps.Keys(set)), err
}
