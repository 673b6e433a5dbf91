package rdzv

import (
	"fmt"
	"testing"

	"rdzv/rdzv/internal/record"
)

// exporters joins n agents, each with exports of its own.
func (j *job) exporters(n int) []*Session {
	j.t.Helper()
	sessions := make([]*Session, n)
	for i := range sessions {
		m := member(i)
		m.Exports = &Exports{Sealed: []byte("of " + m.Host)}
		sessions[i] = j.join(m)
	}
	return sessions
}

// All agents get what the agent of rank 0 exports, and nothing of the others.
func TestExports(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 130}) // more than one transaction
	sessions := j.exporters(130)
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
	second.Exports = &Exports{Sealed: []byte("of node1"), Files: true}
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

// Variables that rank 0 exports are the same on all nodes, whatever the members have; and if they
// may decide which program is found, what was found without them does not count.
func TestExportedFacts(t *testing.T) {
	for _, files := range []bool{false, true} {
		var compared []Notice
		add := func(n Notice) { compared = append(compared, n) }
		j := start(t, LeaderConfig{Tasks: 2, Notify: add})
		sessions := make([]*Session, 2)
		for i := range sessions {
			m := member(i)
			m.Facts = Facts{Program: "p", Variables: map[string]string{
				"NCCL_DEBUG": m.Host, "NCCL_ALGO": m.Host,
			}}
			m.Exports = &Exports{Sealed: []byte("x"), Variables: []string{"NCCL_DEBUG"}, Files: files}
			if files {
				m.Facts.Known = []Fact{{Name: "torch", Value: m.Host}}
				m.Problems = []Problem{{Kind: ProgramMissing, Text: "no p"}}
			}
			sessions[i] = j.join(m)
		}
		j.worlds(sessions)
		j.finish(sessions, succeeded)
		if err := <-j.led; err != nil {
			t.Error(err)
		}
		if len(compared) != 1 || compared[0].(NodesDiffer).Fact != "NCCL_ALGO" {
			t.Errorf("files %t: %+v, want a difference of NCCL_ALGO only", files, compared)
		}
	}
}

// Another problem of a member keeps the job from starting, whatever rank 0 exports.
func TestProblemBesideExports(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 1})
	m := member(0)
	m.Exports = &Exports{Sealed: []byte("x"), Variables: []string{"PATH"}, Files: true}
	m.Problems = []Problem{{Kind: ProgramMissing, Text: "no p"}, {Kind: OtherProblem, Text: "no dir"}}
	s := j.join(m)
	if v, ok := j.ended(s).(*Verdict); !ok || v.Kind != Unready || v.Error() != "no dir" {
		t.Errorf("verdict %v, want no dir", v)
	}
	j.settle(s)
	j.leave(s)
}
