package wrap

import (
	"errors"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/boottime"
	"rdzv/internal/procfs"
	"rdzv/wrap/internal/killtree"
	"rdzv/wrap/internal/waitid"
)

// children are those of a runner: workers, and descendants of them whose parents have ended.
type children struct {
	changes chan int // delivers the pid of one whose status has changed, or 0 when there are none
	taken   chan struct{}
	more    chan struct{} // delivers when there are some again
	none    bool
}

func newChildren() *children {
	c := &children{
		changes: make(chan int), taken: make(chan struct{}), more: make(chan struct{}, 1), none: true,
	}
	return c
}

// watch waits for changes. It does not return. A child is reaped by take, so that its pid is its
// own until then.
//
// SIGCHLD wakes it: while a goroutine waits in waitid(2) Go looks ten times per second whether it
// can use its processor.
func (c *children) watch() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	for {
		if c.next() {
			continue
		}
		select {
		case <-signals:
		case <-c.more:
		}
	}
}

// next delivers a change, or that there are no children. It reports whether there may be others.
func (c *children) next() bool {
	change, err := waitid.Any(unix.WEXITED | unix.WSTOPPED | unix.WCONTINUED | unix.WNOWAIT)
	switch {
	case errors.Is(err, unix.ECHILD):
		c.changes <- 0
	case err == nil && change.PID != 0:
		c.changes <- change.PID
	default:
		return false
	}
	<-c.taken
	return err == nil
}

// take returns the change that changes has delivered. It is not ok if there is none.
func (c *children) take(pid int) (status syscall.WaitStatus, ok bool) {
	defer func() { c.taken <- struct{}{} }()
	if pid == 0 { // a worker may have been started meanwhile
		c.none = waitid.HaveNone()
		return 0, false
	}
	const options = syscall.WNOHANG | syscall.WUNTRACED | unix.WCONTINUED
	got, err := syscall.Wait4(pid, &status, options, nil)
	return status, err == nil && got == pid
}

// started is called when a worker has been started.
func (c *children) started() {
	c.none = false
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// ownChildren are the children of this process.
func ownChildren() []int {
	pids, _ := procfs.Children(procfs.System, os.Getpid())
	return pids
}

const (
	// killPause is how often processes are looked for that have become children of the runner.
	killPause = 2 * time.Millisecond
	// manyChildren are so many that to look for all after the end of each takes too long.
	manyChildren = 50
	// killWait is how long no process may die of SIGKILL before the rest are reported as survivors:
	// they may belong to another user or hang in the kernel. Many take longer on a busy machine.
	killWait = 3 * time.Second
)

// killer kills all processes of the tree. The times are by package boottime.
type killer struct {
	called time.Duration // when all has returned last; 0 is never
	until  time.Duration // what has not died by then survives
	found  int           // how many all has found last
	fewest int           // the least number that it has found
	tree   killtree.Killer
}

// all sends SIGKILL to all processes of the tree. When a child dies, what it has created meanwhile
// becomes a child of this process: the next call kills it. When the time is over it returns what
// has not died. The time begins anew when some have died, and if this process was stopped.
func (k *killer) all(a *attempt) (survivors []int, over bool) {
	now := boottime.Now()
	if k.found > manyChildren && now-k.called < killPause {
		return nil, false
	}
	if now-k.called > killWait/2 {
		k.fewest = math.MaxInt
		for i := range a.states {
			if s := &a.states[i]; s.runs() && !a.terminal {
				_ = syscall.Kill(-s.pid, syscall.SIGKILL)
			}
		}
	}
	survivors = k.tree.Kill(ownChildren)
	over = k.isOver(now, len(survivors))
	for _, pid := range survivors {
		if s := a.find(pid); s != nil {
			s.signalled = true
		}
	}
	k.called = boottime.Now()
	return survivors, over
}

// isOver notes how many are left now.
func (k *killer) isOver(now time.Duration, left int) bool {
	if k.found = left; left < k.fewest {
		k.fewest, k.until = left, now+killWait
	}
	return now >= k.until
}

// looksPerLimit is how often a runner looks, in the time that a process may be stopped, whether it
// is: the kernel does not report that to the children of a process.
const looksPerLimit = 5

// frozen kills the agent, or the task of a runner, if it is stopped for too long while the tree
// runs.
type frozen struct {
	limit  time.Duration // 0 is for ever
	pids   []int
	looks  map[int]int // how many in succession have found that it is stopped
	looked time.Duration
}

func (f *frozen) untilLook() time.Duration {
	if f.limit <= 0 {
		return time.Hour
	}
	return f.looked + f.limit/looksPerLimit - boottime.Now()
}

// checkFrozen looks if it is time.
func (a *attempt) checkFrozen() {
	f := &a.frozen
	if a.finished || f.untilLook() > 0 {
		return
	}
	f.looked = boottime.Now()
	if f.looks == nil {
		f.looks = map[int]int{}
	}
	for _, pid := range f.pids {
		if !procfs.IsStopped(procfs.System, pid) || !a.isRunning() {
			f.looks[pid] = 0
			continue
		}
		if f.looks[pid]++; f.looks[pid] > looksPerLimit {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			a.desert() // what is process 1 of its pid namespace, as in a container, does not die
		}
	}
}

// endStopped kills the processes if they are stopped, and may not be: the runner, which looks at
// them, has nothing more to do.
func (f *frozen) endStopped() {
	for _, pid := range f.pids {
		if f.limit > 0 && procfs.IsStopped(procfs.System, pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// isRunning tells whether a worker can do something or, when all have ended, an orphan can. Orphans
// do not count while all workers are suspended: the tree is. A lease that is over has suspended it
// too, even if a worker is not shown as stopped: it may be in vfork(2), and its child is.
func (a *attempt) isRunning() bool {
	if a.lease.stopped != nil {
		return false
	}
	workers := false
	for i := range a.states {
		if s := &a.states[i]; s.runs() {
			if !s.suspended {
				return true
			}
			workers = true
		}
	}
	if workers {
		return false
	}
	for _, pid := range ownChildren() {
		p, err := procfs.Read(procfs.System, pid)
		if err == nil && p.State != 'T' && p.State != 'Z' && p.State != 'X' {
			return true
		}
	}
	return false
}
