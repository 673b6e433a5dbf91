package main

import (
	"runtime"
	"runtime/debug"
	"time"
)

// An agent computes for some milliseconds and then waits, beside as many others as there are ranks on the node. The Go
// runtime would make ready for a program that computes with all cores: with one, the agents of 64 ranks on 2 cores cost a
// fifth less until the last worker runs. A collection of the first 4 MB, most of which stays, is worth nothing either.

// frugal makes this process one that waits for others.
func frugal() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(200)
}

// startLasts is when a start is over for sure, so that what it has left behind can be given back.
const startLasts = 5 * time.Second

// hosting makes it one that serves many, until it is called off. A quiet job allocates so little that the garbage of its
// start, a tenth of the memory of a store of 64 agents, would stay for hours.
func hosting() (callOff func()) {
	runtime.SetDefaultGOMAXPROCS()
	debug.SetGCPercent(100)
	tidy := time.AfterFunc(startLasts, debug.FreeOSMemory)
	return func() { tidy.Stop() }
}
