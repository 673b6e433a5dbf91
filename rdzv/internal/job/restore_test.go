package job

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/restart"
)

// puts are the changes when an agent registers.
func puts(m record.Member, rev int64) []Change {
	return []Change{{run.Agents().Of(m.ID), m.Identity(), rev}, {run.Attempt(0).Members().Of(m.ID), m, rev}}
}

// Nobody led, or the leader has died too, when an agent was lost before the first world: a leader
// finds only its member.
func TestLossThatNoLeaderHasSeen(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		rank   int
		want   string
	}{
		"a job": {Config{Tasks: 3}, 1, "lost the agent of rank 1 (pid 1001 on node1): " +
			"it disconnected unexpectedly"},
		"no launcher":  {Config{Tasks: 3}, record.Unknown, "all agents look for the store again"},
		"too few left": {Config{Tasks: 2, MinTasks: 2}, 1, "1 task is left, and the job needs 2"},
		"enough":       {Config{Tasks: 3, MinTasks: 2}, 1, ""},
	} {
		first, second := joinedAgent(0), joinedAgent(1)
		first.Node, second.Node = "node0", "node1"
		first.Tasks, second.Tasks = ranked(min(c.rank, 0)), ranked(c.rank)
		snapshot := append(puts(first, 3), Change{run.Attempt(0).Members().Of(second.ID), second, 4})
		s, _, _ := Restore(base, c.config, Store{Elected: true}, snapshot)
		writes, _ := s.Apply(base.Add(time.Second)) // it has not registered again
		if len(writes) != 1 || writes[0].Ops[0].Key != run.Lost().Of(second.ID) {
			t.Errorf("%s: writes %v, want that agent-1 is lost", name, writes)
			continue
		}
		text := ""
		writes, _ = s.Apply(base, Change{run.Lost().Of(second.ID), writes[0].Ops[0].Value, 5})
		for _, w := range writes {
			v := w.Ops[0].Value.(record.Verdict)
			text += v.Error()
		}
		if !strings.HasSuffix(text, c.want) || c.want == "" && text != "" {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

// An elastic job goes on without an agent of which the leader before has written that it is lost,
// and has warned of it.
func TestLossThatTheLeaderBeforeHasWritten(t *testing.T) {
	first, second := joinedAgent(0), joinedAgent(1)
	snapshot := append(puts(first, 3), Change{run.Attempt(0).Members().Of(second.ID), second, 4},
		Change{run.Lost().Of(second.ID), record.Loss{After: time.Second}, 5})
	s, writes, notices := Restore(base, Config{Tasks: 3, MinTasks: 1, Rules: Rules{LastCall: time.Second}}, Store{}, snapshot)
	if len(writes) > 0 || len(notices) > 0 || s.attempt.members.here != 1 {
		t.Errorf("writes %v, notices %v, %d members", writes, notices, s.attempt.members.here)
	}
}

// The world waits until it is known whether a member whose lease was revoked is lost.
func TestNoWorldWithAnAgentThatMayBeLost(t *testing.T) {
	s := newState(base, Config{Tasks: 2, ReturnTime: time.Second}, Store{Elected: true})
	second := joinedAgent(1)
	s.Apply(base, puts(second, 2)...)
	s.Apply(base, Change{Key: run.Agents().Of(second.ID), Rev: 3})
	if writes, _ := s.Apply(base, puts(joinedAgent(0), 4)...); len(writes) > 0 {
		t.Errorf("%v although an agent may be lost", writes)
	}
	if at := s.Wake(); !at.Equal(base.Add(time.Second)) {
		t.Errorf("wakes at %v", at)
	}
	writes, _ := s.Apply(base, Change{run.Agents().Of(second.ID), second.Identity(), 5})
	if len(writes) != 1 || writes[0].What != "publish the world" {
		t.Errorf("%v when it has registered again, want the world", writes)
	}
}

// The watch of a leader is interrupted when it has written that an agent is lost, and has yet to read
// that. What it finds again must not forget that processes of the lost agent may run.
func TestInterruptedWatchForgetsNoLoss(t *testing.T) {
	c := Config{Tasks: 2, Replaceable: true, Rules: Rules{Restarts: restart.Policy{Max: 3}},
		LostGrace: 4 * time.Second, ReturnTime: time.Second}
	etcd := Store{Elected: true, LeaseTTL: 10 * time.Second}
	before, keys, rev := newState(base, c, etcd), map[string]Change{}, int64(1)
	var apply func(at time.Time, changes ...Change)
	apply = func(at time.Time, changes ...Change) {
		for _, one := range changes {
			if keys[one.Key] = one; one.Value == nil {
				delete(keys, one.Key)
			}
		}
		writes, _ := before.Apply(at, changes...)
		for _, w := range writes {
			rev++
			var written []Change
			for _, op := range w.Ops {
				written = append(written, Change{op.Key, op.Value, rev})
			}
			apply(at, written...)
		}
	}
	second := joinedAgent(1)
	for i, m := range []record.Member{joinedAgent(0), second} {
		m.Node, m.NodeRank, m.LocalSize, m.Tasks = m.Host, i, 1, ranked(i)
		rev++
		apply(base, puts(m, rev)...)
	}
	if before.attempt.phase.world == nil {
		t.Fatal("there is no world")
	}
	at := base.Add(time.Minute)
	rev++
	apply(at, Change{Key: run.Agents().Of(second.ID), Rev: rev})
	at = at.Add(c.ReturnTime)
	writes, _ := before.Apply(at) // they are not read
	if len(writes) != 1 {
		t.Fatal(writes)
	}
	key := run.Lost().Of(second.ID)
	keys[key] = Change{key, writes[0].Ops[0].Value, rev + 1}
	at = at.Add(c.ReturnTime)
	after, _, _ := Restore(at, c, etcd, slices.Collect(maps.Values(keys)))
	after.Continue(before)
	if wait := after.overlap.clearAt.Sub(at); wait < etcd.LeaseTTL {
		t.Errorf("processes of the lost agent may run for %v", wait)
	}
}
