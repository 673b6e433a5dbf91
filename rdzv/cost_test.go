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

// What one more agent costs, on its side and on the store's, is counted and not timed: the count is
// nearly the same on every machine. How large it is depends on the versions of etcd and gRPC; that it
// is the same in a large job as in a small one depends on this package alone. An agent that reads what
// all others have written costs more, the more there are.
func TestAllocationsGrowLinearlyWithAgents(t *testing.T) {
	allocations(t, 2) // what is made once in a process
	few, some, many := allocations(t, 8), allocations(t, 40), allocations(t, 168)
	first, second := int(some-few)/(40-8), int(many-some)/(168-40)
	t.Logf("an agent more: %d allocations among 40, %d among 168", first, second)
	if second > first*11/10 {
		t.Errorf("an agent more makes %d allocations among 40 and %d among 168", first, second)
	}
}
