package holder

import "syscall"

// See child.go for what the functions of this file may do.

// looksPerLimit is how often the holder looks, in the time that a process may be stopped, whether
// it is: the kernel does not report that to the children of a process.
const looksPerLimit = 5

// watch kills the agent and the owner if they are stopped for too long while workers run.
type watch struct {
	shared       *Shared
	workers      *workers
	buffer       *buffer
	agent, owner watched
	looked       int64 // last look
}

// watched is a process that may be stopped.
type watched struct {
	pid   uintptr // 0 is unknown
	stat  uintptr // "/proc/PID/stat"
	looks int64   // how many in succession have found that it is stopped
}

//go:nosplit
//go:norace
//go:nocheckptr
func (w *watch) untilLook(now int64) int64 {
	limit := w.shared.FrozenFor
	if limit <= 0 {
		return never
	}
	return max(0, w.looked+limit/looksPerLimit-now)
}

//go:nosplit
//go:norace
//go:nocheckptr
func (w *watch) look(now int64) {
	if w.untilLook(now) > 0 {
		return
	}
	w.looked = now
	if parent, _ := sys(syscall.SYS_GETPPID, 0, 0, 0, 0); parent == w.agent.pid {
		w.lookAt(&w.agent)
	}
	if w.owner.pid != 0 {
		w.lookAt(&w.owner)
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func (w *watch) lookAt(p *watched) {
	if !w.workers.running() || !w.buffer.isStopped(p.stat) {
		p.looks = 0
		return
	}
	if p.looks++; p.looks > looksPerLimit {
		sys(syscall.SYS_KILL, p.pid, uintptr(syscall.SIGKILL), 0, 0)
		p.looks = 0
	}
}

// isStopped tells whether a process is stopped by a signal, not by a debugger.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (b *buffer) isStopped(stat uintptr) bool {
	n := b.read(stat)
	if n == none {
		return false
	}
	// PID (NAME) STATE; a name may contain parentheses.
	for ; n > 0; n-- {
		if b.byte(n-1) == ')' {
			return b.byte(n+1) == 'T'
		}
	}
	return false
}
