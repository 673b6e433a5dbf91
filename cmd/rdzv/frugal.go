package main

import (
	"runtime"
	"runtime/debug"
	"time"

	_ "rdzv/cmd/rdzv/internal/onecore"
)

// frugal makes this process one that waits for others: a collection of its first 4 MB, most of which stays, is worth
// nothing. (Package onecore has seen to it that it does one thing at a time, unless GOMAXPROCS is set.)
func frugal() { debug.SetGCPercent(startGC) }

// startGC is the heap's growth between two collections: of an agent, and of a store to which many come. That one takes in
// a twelfth more agents in the same time than with 100, which is the measure of a small store: its heap stays smaller.
const (
	startGC = 200
	many    = 512 // agents
)

// startLasts is when a start is over for sure, so that what it has left behind can be given back.
const startLasts = 5 * time.Second

// hosting makes this process one that serves other agents. A quiet job allocates so little that the garbage of its start, a
// tenth of the memory of a store of 64 agents, would stay for hours; it is given back unless the job ends before.
type hosting struct {
	agents int
	tidy   *time.Timer
}

func (h *hosting) begin() {
	runtime.SetDefaultGOMAXPROCS()
	if h.agents < many {
		debug.SetGCPercent(100)
	}
	h.end()
	h.tidy = time.AfterFunc(startLasts, func() {
		debug.SetGCPercent(100)
		debug.FreeOSMemory()
	})
}

func (h *hosting) end() {
	if h.tidy != nil {
		h.tidy.Stop()
	}
}
