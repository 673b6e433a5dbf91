package wrap

import (
	"syscall"
	"time"

	"rdzv/internal/procfs"
)

// The kernel does not deliver SIGTERM to process 1 of a pid namespace unless that process catches
// it (kill(2)), and unshare --fork blocks it. So a program in such a namespace may not learn that
// it is to end, whatever is sent to its worker, and would use up the whole grace period.

// inits ends the namespaces of a tree that is being stopped. The first call of stop only begins the
// pause before the first search.
type inits struct {
	seen  map[int]bool // their first processes that have been stopped, by pid
	at    time.Time    // the next search for others
	pause time.Duration
}

// The pauses between searches double: most workers end before the first one.
const (
	firstInitPause = 20 * time.Millisecond
	maxInitPause   = time.Second
)

// stop ends the namespaces whose first process has not been stopped before: with SIGTERM for
// the processes that catch it, or if there is none with SIGKILL for the first one, and thus for
// all. It leaves those to their ancestors in the tree that catch SIGTERM.
func (n *inits) stop(now time.Time, a *attempt, orphans []int) {
	if n.pause == 0 {
		*n = inits{map[int]bool{}, now, firstInitPause}
	}
	if now.Before(n.at.Add(n.pause)) {
		return
	}
	n.at, n.pause = now, min(2*n.pause, maxInitPause)
	for i := range a.states {
		if s := &a.states[i]; s.runs() {
			n.stopBelow(s.pid, s.delivered, a.group)
		}
	}
	for _, pid := range orphans {
		n.stopBelow(pid, false, 0)
	}
}

// stopBelow does so for pid and its descendants. delivered says that this process
// group has received a signal to end.
func (n *inits) stopBelow(pid int, delivered bool, group int) {
	sets, err := procfs.ReadSignals(procfs.System, pid)
	switch {
	case err != nil || n.seen[pid]:
		return
	case sets.Init:
		n.seen[pid] = true
		catching := catchers(pid)
		if len(catching) == 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for _, pid := range catching {
			if own, _ := syscall.Getpgid(pid); !delivered || own != group {
				_ = syscall.Kill(pid, syscall.SIGTERM)
			}
		}
		return
	case sets.Caught.Has(syscall.SIGTERM):
		return
	}
	children, _ := procfs.Children(procfs.System, pid)
	for _, child := range children {
		n.stopBelow(child, delivered, group)
	}
}

// catchers lists which of pid and its descendants catch SIGTERM, without the descendants of these.
func catchers(pid int) (list []int) {
	sets, err := procfs.ReadSignals(procfs.System, pid)
	if err == nil && sets.Caught.Has(syscall.SIGTERM) {
		return []int{pid}
	}
	children, _ := procfs.Children(procfs.System, pid)
	for _, child := range children {
		list = append(list, catchers(child)...)
	}
	return list
}
