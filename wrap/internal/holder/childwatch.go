package holder

import "syscall"

// See child.go for what the functions of this file may do.

// looksPerLimit is how often the holder looks, in the time that a process may be stopped, whether
// it is: the kernel does not report that to the children of a process.
const looksPerLimit = 5

// watch kills the agent and the owner if they are stopped for too long while the tree runs.
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
	if !w.workers.running() || w.buffer.state(p.stat) != 'T' {
		p.looks = 0
		return
	}
	if p.looks++; p.looks > looksPerLimit {
		sys(syscall.SYS_KILL, p.pid, uintptr(syscall.SIGKILL), 0, 0)
		p.looks = 0
	}
}

// endStopped kills the agent if it is stopped, and may not be: the holder, which looks at it, is
// about to end.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (w *watch) endStopped() {
	parent, _ := sys(syscall.SYS_GETPPID, 0, 0, 0, 0)
	if w.shared.FrozenFor > 0 && parent == w.agent.pid && w.buffer.state(w.agent.stat) == 'T' {
		sys(syscall.SYS_KILL, w.agent.pid, uintptr(syscall.SIGKILL), 0, 0)
	}
}

// state is that of a process in its stat file: 'T' if it is stopped by a signal, 't' by a debugger,
// 0 if that is unknown.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (b *buffer) state(stat uintptr) byte {
	n := b.read(stat)
	if n == none {
		return 0
	}
	// PID (NAME) STATE; a name may contain parentheses.
	for ; n > 0; n-- {
		if b.byte(n-1) == ')' {
			return b.byte(n + 1)
		}
	}
	return 0
}
