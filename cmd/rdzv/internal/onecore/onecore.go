// Package onecore makes the runtime do one thing at a time.
//
// An agent computes for some milliseconds and then waits, beside as many others
// as there are ranks on the node. The Go runtime would make ready for a program
// that computes with all cores: with one, the agents of 64 ranks on 2 cores cost
// a fifth less until the last worker runs.
//
// That is done in an init function, of a package that imports next to nothing and so
// comes before nearly all others (see package early), for two reasons. Main is bound to
// its thread while packages are initialised; every metric that etcd registers
// starts a goroutine and waits for it, and each time idle threads would wake to
// look for work: 1 ms of processor time. And a change of the number of cores
// empties the caches of the allocator into lists, which take two pages of memory
// for each size of object that is in use by then: 260 pages after the
// initialisation of all packages, 1 ms more, and hardly any before it.
//
// Who sets GOMAXPROCS has what it says, above all a watchdog, which is this program
// too and has two threads to run.
package onecore

import (
	"runtime"
	"syscall"
)

func init() {
	if _, given := syscall.Getenv("GOMAXPROCS"); !given {
		runtime.GOMAXPROCS(1)
	}
}
