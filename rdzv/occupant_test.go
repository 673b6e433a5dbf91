package rdzv

import (
	"errors"
	"testing"
)

// Without a launcher a host has one agent, or agents with different node ranks. The agent that
// joins later is refused, and the job goes on with the others.
func TestAgentsOnOneHost(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		const none = Unknown
		for _, test := range []struct {
			name          string
			first, second int // node ranks
			refused       bool
		}{
			{"no node ranks", none, none, true},
			{"the first has one", 1, none, true},
			{"the second has one", none, 1, true},
			{"the same one", 1, 1, true},
			{"different ones", 1, 0, false},
		} {
			t.Run(test.name, func(t *testing.T) {
				on := func(i int, node string, rank int) Member {
					m := member(i)
					m.Node, m.NodeRank = node, rank
					return m
				}
				j := start(t, LeaderConfig{Tasks: 2})
				sessions := []*Session{j.join(on(0, "host/a 1", test.first))}
				second := on(1, "host/a 1", test.second)
				s, err := Join(j.ctx, j.client(second.ID), j.agent(second))
				occupied, refused := errors.AsType[*OccupiedError](err)
				if refused != test.refused || refused && (occupied.Host != "node0" || occupied.PID != 1000) {
					t.Fatalf("Join of the second agent: error %v, want refused: %t", err, test.refused)
				}
				if refused {
					other := test.first
					if other != none {
						other = 1 - other
					}
					s = j.join(on(2, "host/a 10", other))
				}
				sessions = append(sessions, s)
				for _, w := range j.worlds(sessions) {
					if want := map[bool]int{true: 2, false: 1}[refused]; w.Nodes != want {
						t.Errorf("a world of %d nodes, want %d", w.Nodes, want)
					}
				}
				for _, sum := range j.finish(sessions, succeeded) {
					if sum.Verdict == nil || sum.Verdict.Kind != Done {
						t.Errorf("the job ended with %v, want success", sum.Verdict)
					}
				}
			})
		}
	})
}

// A refused agent learns which one has its place even if the job runs already.
func TestAgentOnOneHostJoinsLate(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j := start(t, LeaderConfig{Tasks: 1})
		m := member(0)
		m.Node = "a"
		sessions := []*Session{j.join(m)}
		j.worlds(sessions)
		m.ID = "late"
		_, err := Join(j.ctx, j.client(m.ID), j.agent(m))
		if _, ok := errors.AsType[*OccupiedError](err); !ok {
			t.Errorf("Join: error %v, want that the host has an agent", err)
		}
		m.Node = "b"
		if _, err := Join(j.ctx, j.client(m.ID), j.agent(m)); err != ErrFull {
			t.Errorf("Join on another host: error %v, want %v", err, ErrFull)
		}
		j.finish(sessions, succeeded)
	})
}

// Only the agent of rank 0 needs MASTER_PORT.
func TestPortProblem(t *testing.T) {
	for name, hosts := range map[string][]string{"on rank 0": {"b", "a"}, "elsewhere": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			j := start(t, LeaderConfig{Tasks: 2})
			var sessions []*Session
			for i, host := range hosts {
				m := member(i)
				m.Host = host
				if i == 1 {
					m.Rank0Problems = []Problem{{Kind: OtherProblem, Text: "port 1 is in use"}}
				}
				sessions = append(sessions, j.join(m))
			}
			if name == "elsewhere" {
				j.worlds(sessions)
				j.finish(sessions, succeeded)
				return
			}
			want := "port 1 is in use (on a)"
			if v, ok := j.ended(sessions[0]).(*Verdict); !ok || v.Kind != Unready ||
				v.Error() != want {
				t.Errorf("verdict %+v, want %q", v, want)
			}
			each(sessions, func(_ int, s *Session) { j.settle(s); j.leave(s) })
		})
	}
}
