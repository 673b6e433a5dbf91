package main

import (
	"runtime"
	"runtime/debug"
	"time"

	_ "rdzv/cmd/rdzv/internal/onecore"
)

// frugal makes this process one that waits for others: a collection of its first 4 MB, most of which stays, is worth
// nothing. (Package onecore has seen to it that it does one thing at a time.)
func frugal() { debug.SetGCPercent(startGC) }

// startGC is the heap's growth between two collections while agents come: with 200 instead of 100 a store takes in a
// twelfth more of them in the same time.
const startGC = 200

// startLasts is when a start is over for sure, so that what it has left behind can be given back.
const startLasts = 5 * time.Second

// hosting makes it one that serves many, until it is called off. A quiet job allocates so little that the garbage of its
// start, a tenth of the memory of a store of 64 agents, would stay for hours.
func hosting() (callOff func()) {
	runtime.SetDefaultGOMAXPROCS()
	tidy := time.AfterFunc(startLasts, func() {
		debug.SetGCPercent(100)
		debug.FreeOSMemory()
	})
	return func() { tidy.Stop() }
}
