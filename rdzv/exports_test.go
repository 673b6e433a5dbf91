package rdzv

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
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

// No agent goes on before all have confirmed.
func TestReady(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 3})
	sessions := j.exporters(3, true)
	j.worlds(sessions)
	var all atomic.Bool
	each(sessions, func(i int, s *Session) {
		if i == 2 {
			j.awaitKey(s.keys.Ready().Of("agent-0"))
			j.awaitKey(s.keys.Ready().Of("agent-1"))
			all.Store(true)
		}
		if err := s.Ready(j.ctx, nil, Facts{}); err != nil || !all.Load() {
			t.Errorf("agent %d: %v, all have confirmed: %t", i, err, all.Load())
		}
	})
	j.finish(sessions, succeeded)
}

// awaitKey waits until a key exists.
func (j *job) awaitKey(key string) {
	j.t.Helper()
	for {
		answer, err := j.admin.Get(j.ctx, key)
		if err != nil {
			j.t.Error(err)
			return
		}
		if len(answer.Kvs) > 0 {
			return
		}
	}
}

// The problems of all agents are reported together.
func TestNotReady(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 3})
	sessions := j.exporters(3, true)
	j.worlds(sessions)
	problems := [][]Problem{
		nil, {{Kind: ProgramMissing, Text: "no x"}}, {{Kind: OtherProblem, Text: "no y"}},
	}
	each(sessions, func(i int, s *Session) {
		err := s.Ready(j.ctx, problems[i], Facts{})
		v, ok := errors.AsType[*Verdict](err)
		want := "no x (on node1)\nno y (on node2)"
		if !ok || v.Kind != Unready || v.Error() != want {
			t.Errorf("agent %d: %v, want %q", i, err, want)
		}
		j.settle(s)
		j.leave(s)
	})
}

func TestLostBeforeReady(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 3})
	sessions := j.exporters(3, true)
	j.worlds(sessions)
	j.kill("agent-2")
	each(sessions[:2], func(i int, s *Session) {
		err := s.Ready(j.ctx, nil, Facts{})
		if v, ok := errors.AsType[*Verdict](err); !ok || v.Kind != Lost || v.By != "agent-2" {
			t.Errorf("agent %d: %v, want the loss of agent-2", i, err)
		}
		j.settle(s)
		j.leave(s)
	})
}

func TestInvalidReady(t *testing.T) {
	bad := map[string]struct{ value, want string }{
		"no problem": {record.Encode(record.Readiness{Problems: []Problem{{}}}), `invalid problem: kind "", text ""`},
		"corrupt":    {"{", "unexpected end of JSON input"},
	}
	for name, b := range bad {
		t.Run(name, func(t *testing.T) {
			j := start(t, LeaderConfig{Tasks: 2})
			sessions := j.exporters(2, true)
			j.worlds(sessions)
			j.put(sessions[1].keys.Ready().Of("agent-1"), b.value)
			v, ok := j.ended(sessions[0]).(*Verdict)
			want := "cannot read whether the agent of rank 1 (pid 1001 on node1) is ready: " +
				"" + b.want
			if !ok || v.Kind != Unready || !strings.HasPrefix(v.Text, want) {
				t.Errorf("verdict %+v, want %q", v, want)
			}
			each(sessions, func(_ int, s *Session) { j.settle(s); j.leave(s) })
		})
	}
}

// A second confirmation of an agent is ignored, as is one of a stranger.
func TestReadyTwice(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	sessions := j.exporters(2, true)
	j.worlds(sessions)
	k := sessions[0].keys
	j.put(k.Ready().Of("stranger"), "{")
	j.put(k.Ready().Of("agent-0"), record.Encode(record.Readiness{}))
	j.put(k.Ready().Of("agent-0"), "{")
	each(sessions, func(i int, s *Session) {
		if err := s.Ready(j.ctx, nil, Facts{}); err != nil {
			t.Errorf("agent %d: %v", i, err)
		}
	})
	j.put(k.Ready().Of("agent-1"), "{")
	for i, sum := range j.finish(sessions, succeeded) {
		if sum.Verdict.Kind != Done {
			t.Errorf("agent %d: %v", i, sum.Verdict)
		}
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
