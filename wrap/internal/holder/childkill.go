package holder

import (
	"syscall"
	"unsafe"
)

// See child.go for what the functions of this file may do.

const (
	// looksPerLimit is how often the holder looks, in the time that an agent may be stopped, whether
	// it is: the kernel does not report that to the children of a process.
	looksPerLimit = 5
	// A holder with a lease wakes so often at least, and was stopped if it wakes so much later.
	leaseLook   = 2 * second
	pausedAfter = 500 * millisecond
	// leaseMargin is how long after its time the holder ends a tree that the agent does not end.
	leaseMargin = 300 * millisecond
	// resumeWait is how long an agent may take to stop, or to renew, after a pause.
	resumeWait = second
	killPause  = 2 * millisecond
	killWait   = 3 * second
)

// untilLook is when look has to be called next; negative is never.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) untilLook() int64 {
	s := (*Shared)(at(m, m.shared-m.base))
	wait := int64(-1)
	switch {
	case m.killing && !m.finished:
		return killPause
	case m.live == 0:
		return wait
	}
	now := m.clock(clockBoottime)
	if s.FrozenFor > 0 {
		wait = max(0, m.looked+s.FrozenFor/looksPerLimit-now)
	}
	until := leaseUntil(m)
	if until != 0 && (wait < 0 || wait > leaseLook) {
		wait = leaseLook
	}
	if until != 0 {
		if left := until + leaseMargin - now; left > 0 && left < wait {
			wait = left
		} else if left <= 0 && s.Held == 0 && m.asleep < m.live {
			wait = min(wait, 50*millisecond)
		}
	}
	return wait
}

//go:nosplit
//go:norace
//go:nocheckptr
func leaseUntil(m *memory) int64 { return *(*int64)(at(m, m.until-m.base)) }

// look ends the tree if the agent is stopped for too long, or if its lease is over and the agent
// does not end it.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) look() {
	s := (*Shared)(at(m, m.shared-m.base))
	if m.killing || m.live == 0 {
		return
	}
	now := m.clock(clockBoottime)
	if m.wakeBy != 0 && now > m.wakeBy+pausedAfter {
		m.resumed = now
		if !m.full {
			m.report(Paused, 0, 0, 0, 0)
		}
	}
	if s.FrozenFor > 0 && now >= m.looked+s.FrozenFor/looksPerLimit {
		m.looked = now
		if parent, _ := sys(syscall.SYS_GETPPID, 0, 0, 0, 0); parent == m.agent {
			m.killFrozen(&m.frozen[0], m.agent, m.stat)
		}
		if m.ownerPID != 0 && !m.disowned {
			m.killFrozen(&m.frozen[1], m.ownerPID, m.ownerStat)
		}
	}
	until := leaseUntil(m)
	late := now - until - leaseMargin
	paused := m.asleep == m.live || now < m.resumed+resumeWait
	if until == 0 || late < 0 || s.Held != 0 || paused {
		return
	}
	if !m.told {
		m.told = true
		m.endWorkers()
		m.report(LeaseOver, 0, 0, 0, 0)
	}
	if late >= s.LeaseGrace {
		m.kill()
	}
}

// endWorkers sends SIGTERM to the workers that have not received a signal to end.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) endWorkers() {
	for i := uintptr(0); i < m.count; i++ {
		if w := m.slot(i); w.pid != 0 && !w.signalled {
			m.signal(w.pid, uintptr(syscall.SIGTERM), End)
		}
	}
}

// killFrozen kills a process if so many looks have found it stopped while workers run.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) killFrozen(looks *int64, pid, stat uintptr) {
	if m.asleep == m.live || !isStopped(m, stat) {
		*looks = 0
		return
	}
	if *looks++; *looks > looksPerLimit {
		sys(syscall.SYS_KILL, pid, uintptr(syscall.SIGKILL), 0, 0)
		*looks = 0
	}
}

// isStopped tells whether a process is stopped by a signal, not by a debugger.
//
//go:nosplit
//go:norace
//go:nocheckptr
func isStopped(m *memory, stat uintptr) bool {
	n := m.read(stat, 0)
	if n == none {
		return false
	}
	// PID (NAME) STATE; a name may contain parentheses.
	for ; n > 0; n-- {
		if m.byteAt(n-1) == ')' {
			return m.byteAt(n+1) == 'T'
		}
	}
	return false
}

// read reads the begin of a file into the buffer, which has room after it.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) read(path, offset uintptr) (n uintptr) {
	const here = ^uintptr(99) // AT_FDCWD
	fd, errno := sys(syscall.SYS_OPENAT, here, path, syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return none
	}
	n, errno = sys(syscall.SYS_PREAD64, fd, uintptr(unsafe.Pointer(&m.buffer)), bufferSize-8, offset)
	sys(syscall.SYS_CLOSE, fd, 0, 0, 0)
	if errno != 0 {
		return none
	}
	return n
}

//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) byteAt(n uintptr) byte {
	return *(*byte)(unsafe.Add(unsafe.Pointer(&m.buffer), n))
}

// killAll sends SIGKILL to all children. When a child dies its own children become children of this
// process: each call kills one generation of the tree. What has not died in time is reported.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) killAll() {
	over := m.clock(clockBoottime) >= m.killBy
	if n := m.read(m.children, 0); n == none {
		m.killByNumber(over)
	} else {
		m.killListed(n, over)
	}
	if over && !m.full {
		m.exit(true)
	}
}

// killListed kills the first children in the buffer, which has n bytes: there are others later.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) killListed(n uintptr, over bool) {
	pid := uintptr(0)
	for i := uintptr(0); i < n && !m.full; i++ {
		if c := m.byteAt(i); c >= '0' && c <= '9' {
			pid = pid*10 + uintptr(c-'0')
			continue
		}
		m.killOne(pid, over)
		pid = 0
	}
}

// killByNumber replaces killListed on a kernel without CONFIG_PROC_CHILDREN or in a sandbox without
// /proc. It takes about half a second.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) killByNumber(over bool) {
	const highest = 1 << 22 // PID_MAX_LIMIT
	for pid := uintptr(2); pid < highest && !m.full; pid++ {
		m.killOne(pid, over)
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func (m *memory) killOne(pid uintptr, over bool) {
	if over {
		const options = syscall.WEXITED | syscall.WNOHANG | syscall.WNOWAIT
		_, errno := sys(syscall.SYS_WAITID, 1, pid, uintptr(unsafe.Pointer(&m.info)), options)
		if errno == 0 {
			m.report(Survivor, 0, int64(pid), 0, 0)
		}
		return
	}
	m.signal(pid, uintptr(syscall.SIGKILL), End)
}
