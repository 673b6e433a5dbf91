package rdzv

import (
	"runtime"
	"testing"
)

// allocations counts those of a job of n agents and of its store, from the first connection to the last goodbye.
func allocations(t *testing.T, n int) uint64 {
	j := start(t, LeaderConfig{Agents: n})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	sessions := j.agents(n)
	j.worlds(sessions)
	j.finish(sessions, succeeded)
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// What one more agent costs, on its side and on the store's, is counted and not timed: it is nearly the same on every
// machine, and the same in a large job as in a small one.
func TestAnAgentCostsSoManyAllocations(t *testing.T) {
	allocations(t, 2) // what is made once in a process
	few, some, more := allocations(t, 8), allocations(t, 40), allocations(t, 72)
	first, second := int(some-few)/32, int(more-some)/32
	t.Logf("an agent more: %d allocations among 40, %d among 72", first, second)
	if second > 3200 {
		t.Errorf("an agent more makes %d allocations", second)
	}
	if second > first*3/2 {
		t.Errorf("an agent more makes %d allocations among 40 and %d among 72", first, second)
	}
}
