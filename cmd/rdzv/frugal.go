package main

import (
	"runtime"
	"runtime/debug"
)

// An agent computes for some milliseconds and then waits, beside as many others as there are ranks on the node. The Go
// runtime would make ready for a program that computes with all cores: with one, the agents of 64 ranks on 2 cores cost a
// fifth less until the last worker runs. A collection of the first 4 MB, most of which stays, is worth nothing either.

// frugal makes this process one that waits for others.
func frugal() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(200)
}

// hosting makes it one that serves many.
func hosting() { runtime.SetDefaultGOMAXPROCS() }
