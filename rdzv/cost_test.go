package rdzv

import (
	"runtime"
	"testing"
)

// allocations counts the allocations of a job of n agents and its store, from the first
// connection until the last agent has left.
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

// The cost of an additional agent is counted in allocations, because their number is almost the
// same on every machine. It depends on the versions of etcd and gRPC, but only this package
// decides whether it is the same in a large job as in a small one: it grows if an agent reads
// what all others have written.
func TestAllocationsGrowLinearlyWithAgents(t *testing.T) {
	allocations(t, 2) // allocates what a process needs only once
	few, some, many := allocations(t, 8), allocations(t, 40), allocations(t, 168)
	first, second := int(some-few)/(40-8), int(many-some)/(168-40)
	t.Logf("allocations per additional agent: %d up to 40 agents, %d up to 168", first, second)
	if second > first*11/10 {
		t.Errorf("the cost of an additional agent grows from %d to %d allocations", first, second)
	}
}
