package job

import (
	"testing"
	"time"

	"rdzv/rdzv/internal/record"
)

// An elastic job starts when all have joined, or enough and the last call is over, which starts
// again if one of them is lost.
func TestLastCall(t *testing.T) {
	c := Config{Tasks: 3, MinTasks: 2, Rules: Rules{LastCall: time.Second}}
	s := newState(base, c, Store{})
	world := func(writes []Write) bool { return len(writes) > 0 && writes[0].What == "publish the world" }
	s.Apply(base, puts(joinedAgent(0), 1)...)
	s.Apply(base, puts(joinedAgent(1), 2)...)
	if at := s.Wake(); !at.Equal(base.Add(time.Second)) {
		t.Errorf("the last call ends at %v", at)
	}
	now := base.Add(500 * time.Millisecond)
	s.Apply(now, Change{run.Lost().Of("agent-1"), record.Loss{}, 3})
	if writes, _ := s.Apply(base.Add(time.Second)); world(writes) {
		t.Error("it starts with one agent")
	}
	now = base.Add(2 * time.Second)
	s.Apply(now, puts(joinedAgent(2), 4)...)
	if writes, _ := s.Apply(now.Add(time.Second)); !world(writes) {
		t.Errorf("%v, want the world", writes)
	}
}

// The join timeout ends an attempt of which an agent is lost later, while the world is to be agreed.
func TestJoinTimeoutCountsAgain(t *testing.T) {
	patient := func(i int) record.Member {
		m := joinedAgent(i)
		m.JoinWithin = time.Minute
		return m
	}
	// One more agent may join, so that the loss of one of two does not end the job.
	s := newState(base, Config{
		Tasks: 3, MinTasks: 2, Rules: Rules{LastCall: time.Hour}, ReturnTime: time.Hour,
	}, Store{Elected: true})
	s.Apply(base, puts(patient(0), 1)...)
	s.Apply(base, puts(patient(1), 2)...)
	s.Apply(base, Change{run.Agents().Of("agent-0"), patient(0), 3},
		Change{run.Agents().Of("agent-1"), patient(1), 3})
	s.Apply(base, Change{run.Agents().Of("agent-1"), nil, 4}) // it may return
	late := base.Add(time.Minute)
	if writes, _ := s.Apply(late); len(writes) > 0 {
		t.Fatalf("%v although an agent may be lost", writes)
	}
	writes, _ := s.Apply(late.Add(time.Second), Change{run.Lost().Of("agent-1"), record.Loss{}, 5})
	if len(writes) != 1 || writes[0].Ops[0].Key != run.Attempt(0).Verdict() {
		t.Errorf("%v, want a verdict", writes)
	}
}

// An agent without a place waits no longer than its own join timeout if all members are lost.
func TestDeadlineWithoutMembers(t *testing.T) {
	var g gathering
	if at := g.deadline(); !at.IsZero() {
		t.Errorf("deadline %v", at)
	}
	for _, wait := range []time.Duration{0, time.Hour, time.Minute, 2 * time.Minute} {
		limitWait(base, record.Member{JoinWithin: wait}, &g.otherWait)
	}
	if at := g.deadline(); !at.Equal(base.Add(time.Minute)) {
		t.Errorf("deadline %v, want after a minute", at)
	}
	limitWait(base, record.Member{JoinWithin: time.Hour}, &g.joinDeadline)
	if at := g.deadline(); !at.Equal(base.Add(time.Hour)) {
		t.Errorf("deadline %v, want that of the member", at)
	}
}

// An agent that finds no vacant seat waits no longer than its join timeout.
func TestUnseatedAgentWaits(t *testing.T) {
	s := newState(base, Config{Tasks: 1, Replaceable: true}, Store{})
	s.attempt.phase.later = true
	m := joinedAgent(5)
	m.JoinWithin = time.Minute
	if s.Apply(base, puts(m, 1)...); len(s.attempt.members.unseated) != 1 {
		t.Fatalf("%d agents without a place", len(s.attempt.members.unseated))
	}
	if at := s.Wake(); !at.Equal(base.Add(time.Minute)) {
		t.Errorf("wakes at %v, want after a minute", at)
	}
}
