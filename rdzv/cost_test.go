package rdzv

import (
	"runtime"
	"testing"
)

// cost is what a job and its store use from the first connection until the last agent has left.
type cost struct {
	allocations int
	bytes       int // that the agents send and receive
	changes     int // transactions that write to the store
}

func costOf(t *testing.T, agents int) cost {
	j := start(t, LeaderConfig{Tasks: agents})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	sessions := j.agents(agents)
	j.worlds(sessions)
	j.finish(sessions, succeeded)
	runtime.ReadMemStats(&after)
	answer, err := j.admin.Get(j.ctx, "none")
	if err != nil {
		t.Fatal(err)
	}
	allocations := int(after.Mallocs - before.Mallocs)
	return cost{allocations, int(j.bytes.Load()), int(answer.Header.Revision)}
}

// The cost of an additional agent is counted, because such numbers are almost the same on every
// machine. They depend on the versions of etcd and gRPC, but only this package decides whether
// they are the same in a large job as in a small one: they grow if an agent reads what all others
// have written.
func TestCostGrowsLinearlyWithAgents(t *testing.T) {
	costOf(t, 2) // allocates what a process needs only once
	few, some, many := costOf(t, 8), costOf(t, 40), costOf(t, 168)
	for _, c := range []struct {
		what            string
		few, some, many int
	}{
		{"allocations", few.allocations, some.allocations, many.allocations},
		{"bytes", few.bytes, some.bytes, many.bytes},
		{"changes", few.changes, some.changes, many.changes},
	} {
		first, second := (c.some-c.few)/(40-8), (c.many-c.some)/(168-40)
		t.Logf("%s per additional agent: %d up to 40 agents, %d up to 168", c.what, first, second)
		if second > first*11/10+1 { // whether the store learns that an agent has left depends on time
			t.Errorf("an additional agent costs %d %s up to 40 agents, but %d up to 168",
				first, c.what, second)
		}
	}
}
