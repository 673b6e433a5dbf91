package rdzv

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// The leader has the facts of all nodes in the order of the ranks when all have joined, and those
// of the agents that have joined when the others are too late.
func TestGathered(t *testing.T) {
	for _, agents := range []int{2, 3} {
		gathered := make(chan []Member, 1)
		j := start(t, LeaderConfig{Agents: agents, Gathered: func(all []Member) { gathered <- all }})
		sessions := make([]*Session, 2)
		for _, rank := range []int{1, 0} {
			m := member(rank)
			m.Hosting = rank == 0
			m.NodeFacts = []NodeFact{{Name: "kernel", Value: strings.Repeat("é", maxFactValue)}}
			if agents == 3 && rank == 0 {
				sessions[rank] = j.joinUntil(time.Now().Add(100*time.Millisecond), m)
				continue
			}
			sessions[rank] = j.join(m)
		}
		_, err := sessions[1].World(j.ctx)
		if (err == nil) != (agents == 2) {
			t.Errorf("%d agents: World returned %v", agents, err)
		}
		all := <-gathered
		var hosts []string
		for _, m := range all {
			hosts = append(hosts, m.Host)
			if len(m.NodeFacts) != 1 || len(m.NodeFacts[0].Value) > maxFactValue {
				t.Errorf("facts %+v", m.NodeFacts)
			}
		}
		if !slices.Equal(hosts, []string{"node0", "node1"}) {
			t.Errorf("gathered the members of %q", hosts)
		}
		each(sessions, func(i int, s *Session) { j.settle(s, succeeded(i)); j.leave(s) })
	}
}
