package rdzv

import (
	"fmt"
	"testing"

	"rdzv/rdzv/internal/record"
)

// exporters joins n agents, each with exports of its own.
func (j *job) exporters(n int, confirm bool) []*Session {
	j.t.Helper()
	sessions := make([]*Session, n)
	for i := range sessions {
		m := member(i)
		m.Exports = &Exports{Sealed: []byte("of " + m.Host), Confirm: confirm}
		if confirm { // these do not count
			m.Problems = []Problem{{Kind: OtherProblem, Text: "without the exports"}}
			m.Rank0Problems = m.Problems
		}
		sessions[i] = j.join(m)
	}
	return sessions
}

// All agents get what the agent of rank 0 exports, and nothing of the others.
func TestExports(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 130}) // more than one transaction
	sessions := j.exporters(130, false)
	for i, w := range j.worlds(sessions) {
		if w.Exports == nil || string(w.Exports.Sealed) != "of node0" {
			t.Errorf("agent %d got %+v, want what node0 exports", i, w.Exports)
		}
	}
	j.finish(sessions, succeeded)
}

func TestNoExports(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	first, second := member(0), member(1)
	second.Exports = &Exports{Sealed: []byte("of node1"), Confirm: true}
	sessions := []*Session{j.join(first), j.join(second)}
	for i, w := range j.worlds(sessions) {
		if w.Exports != nil {
			t.Errorf("agent %d got %q, but rank 0 exports nothing", i, w.Exports.Sealed)
		}
	}
	j.finish(sessions, succeeded)
}

// The largest exports, in any number of variables, are readable.
func TestLargestExports(t *testing.T) {
	e := &Exports{Sealed: make([]byte, 128<<10+64)}
	for i := range (128 << 10) / len("aaaa=\x00") {
		e.Variables = append(e.Variables, fmt.Sprintf("%04x", i))
	}
	m := member(0)
	m.Exports = e
	if _, err := record.Decode[Member]([]byte(record.Encode(m))); err != nil {
		t.Error(err)
	}
}

// Variables that rank 0 exports are the same on all nodes, whatever the members have.
func TestExportedFacts(t *testing.T) {
	for _, confirm := range []bool{false, true} {
		var compared []Notice
		add := func(n Notice) { compared = append(compared, n) }
		j := start(t, LeaderConfig{Tasks: 2, Notify: add})
		sessions := make([]*Session, 2)
		facts := make([]Facts, 2)
		for i := range sessions {
			m := member(i)
			m.Facts = Facts{Program: "p", Variables: map[string]string{
				"NCCL_DEBUG": m.Host, "NCCL_ALGO": m.Host,
			}}
			m.Exports = &Exports{Sealed: []byte("x"), Variables: []string{"NCCL_DEBUG"},
				Confirm: confirm}
			facts[i] = m.Facts
			sessions[i] = j.join(m)
		}
		j.worlds(sessions)
		if confirm {
			each(sessions, func(i int, s *Session) {
				if err := s.Ready(j.ctx, nil, facts[i]); err != nil {
					t.Errorf("agent %d: %v", i, err)
				}
			})
		}
		j.finish(sessions, succeeded)
		if err := <-j.led; err != nil {
			t.Error(err)
		}
		if len(compared) != 1 || compared[0].(NodesDiffer).Fact != "NCCL_ALGO" {
			t.Errorf("confirm %t: %+v, want a difference of NCCL_ALGO only", confirm, compared)
		}
	}
}
