package wrap

import (
	"runtime"
	"runtime/metrics"
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
	if heapSize() >= max(g.most, leastHeap) {
		runtime.GC()
		g.most = 2 * heapSize()
	}
	g.looked = time.Now()
}

// heapSize is the size of the heap in bytes. runtime.ReadMemStats would stop the world, and touch
// half a megabyte of the runtime's own memory.
func heapSize() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
