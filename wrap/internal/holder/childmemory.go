package holder

import (
	"syscall"
	"unsafe"
)

// See child.go for what the functions of this file may do.

// ownMemory lets the holder, as a fork of the agent, give up its copy of the agent's memory, and
// have a name and arguments of its own.
type ownMemory struct {
	page      uintptr // the size of a page: madvise(2) rounds up to whole ones
	writable  []span
	arguments []byte  // the command line
	name      uintptr // Name, which ends with 0
}

const wipeOnFork, keepOnFork = 18, 19 // Linux 4.14; the same numbers on all architectures

// advise gives advice (madvise(2)) for the agent's own memory, except for the stack of this thread.
//
// Before the fork it is wipeOnFork: the holder then has zeros there, and the agent need not copy
// each page that it changes. An older kernel refuses that; in any case the holder gives the memory
// up, so that no page exists twice.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (o *ownMemory) advise(advice uintptr) {
	room := 2 * o.page
	var here uintptr
	low := uintptr(unsafe.Pointer(&here))&^(o.page-1) - room
	high := low + 2*room + o.page
	for _, s := range o.writable {
		from, to := s.at, s.at+s.size
		if from < high && low < to {
			adviseRange(from, low, advice)
			from = high
		}
		adviseRange(from, to, advice)
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func adviseRange(from, to, advice uintptr) {
	if from < to {
		sys(syscall.SYS_MADVISE, from, to-from, advice, 0)
	}
}

// rename gives the process the name of the holder.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (o *ownMemory) rename() {
	const setName = 15
	sys(syscall.SYS_PRCTL, setName, o.name, 0, 0)
}

// overwriteArguments makes ps show the name of the holder, not the arguments of the agent.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (o *ownMemory) overwriteArguments() {
	arguments := o.arguments
	for i := range arguments {
		arguments[i] = 0
		if i < len(Name) && i+1 < len(arguments) {
			arguments[i] = Name[i]
		}
	}
}
