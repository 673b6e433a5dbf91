package rdzv

import (
	"strings"
	"testing"
)

// Exactly one agent leads, and its successor knows the failures if it is lost.
func TestLeads(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	sessions := j.leasedAgents(3, 3)
	j.worlds(sessions)
	for i, s := range sessions {
		if s.Leads() != (i == 0) {
			t.Errorf("agent %d leads: %t", i, s.Leads())
		}
	}
	j.lose(sessions[0])
	rest := sessions[1:]
	for _, s := range rest {
		wantLost(t, j.ended(s), "the agent of rank 0 (pid 1000 on node0)")
	}
	workers := []Worker{stopped(1), {Rank: 2, Code: 7}}
	for i, sum := range j.finish(rest, func(i int) Worker { return workers[i] }) {
		if leads := i == 0; rest[i].Leads() != leads || (len(sum.Failures) == 1) != leads {
			t.Errorf("agent %d leads: %t, failures %v", i+1, rest[i].Leads(), sum.Failures)
		}
	}
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	sessions := make([]*Session, 2)
	for i := range sessions {
		c := j.leased(i, 2)
		c.Prefix = "/of alice/"
		sessions[i] = j.joinWith(j.client(member(i).ID), c)
	}
	j.worlds(sessions)
	left := j.keysLeft()
	for _, key := range left {
		if !strings.HasPrefix(key, "/of alice/v1/test/run") {
			t.Errorf("key %q", key)
		}
	}
	if len(left) == 0 {
		t.Error("no keys")
	}
	j.finish(sessions, succeeded)
	j.wantNothingLeft()
}
