package holder

import "syscall"

// See child.go for what the functions of this file may do.

const (
	killPause = 2 * millisecond
	killWait  = 3 * second
)

// killer kills all processes of the tree.
type killer struct {
	workers *workers
	channel *channel

	begun  bool
	called int64 // when all has returned last
	until  int64 // what has not died by then is a Survivor
}

// all sends SIGKILL to all children. When a child dies its own children become children of this
// process: each call kills one generation of the tree. It tells whether the time is over: then it
// reports what has not died. The time begins anew if this process was stopped.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (k *killer) all() (over bool) {
	now := clock(clockBoottime)
	if now-k.called > killWait/2 {
		k.until = now + killWait
	}
	over = now >= k.until
	if k.workers.children.read() {
		k.listed(over)
	} else {
		k.byNumber(over)
	}
	k.called = clock(clockBoottime)
	return over
}

// listed kills the first children that have been read: there are others later.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (k *killer) listed(over bool) {
	children := &k.workers.children
	for pid := children.next(); pid != 0 && !k.channel.full; pid = children.next() {
		k.one(pid, over)
	}
}

// byNumber replaces listed on a kernel without CONFIG_PROC_CHILDREN or in a sandbox without /proc.
// It takes about half a second.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (k *killer) byNumber(over bool) {
	const highest = 1 << 22 // PID_MAX_LIMIT
	for pid := uintptr(2); pid < highest && !k.channel.full; pid++ {
		k.one(pid, over)
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func (k *killer) one(pid uintptr, over bool) {
	k.workers.signal(pid, syscall.SIGKILL, End)
	if child, _ := k.workers.look(pid); child && over {
		k.channel.report(Survivor, 0, int64(pid), 0, 0)
	}
}
