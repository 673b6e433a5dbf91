package wrap

import (
	"runtime"
	"time"
)

// garbage collects the garbage of a runner, which Go does not do there by itself (parent.Start). It
// stops the world, which would wait for a start that hangs: see starter.
//
// Package runtime/debug could tell Go when to collect. But Go initialises it, and what imports it,
// after many packages of which a runner needs none.
type garbage struct {
	looked time.Time
	most   uint64 // bytes on the heap before it is collected
	heap   runtime.MemStats
}

const (
	// garbagePause is between two looks at the heap, and idlePause if little happens.
	garbagePause, idlePause = 200 * time.Millisecond, time.Minute
	// leastHeap is below which nothing is collected, as in other Go programs.
	leastHeap = 4 << 20
)

// collect collects it if it is as much as what is in use. Idle says that only time has passed.
func (g *garbage) collect(idle bool) {
	pause := garbagePause
	if idle {
		pause = idlePause
	}
	if time.Since(g.looked) < pause {
		return
	}
	runtime.ReadMemStats(&g.heap)
	if g.heap.HeapAlloc >= max(g.most, leastHeap) {
		runtime.GC()
		runtime.ReadMemStats(&g.heap)
		g.most = 2 * g.heap.HeapAlloc
	}
	g.looked = time.Now()
}
