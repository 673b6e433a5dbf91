package job

import (
	"testing"
	"time"
)

// An elastic job starts when all have joined, or enough and the last call is over, which starts
// again if one of them is lost.
func TestLastCall(t *testing.T) {
	c := Config{Tasks: 3, MinTasks: 2, LastCall: time.Second}
	s := newState(base, c)
	world := func(writes []Write) bool { return len(writes) > 0 && writes[0].What == "publish the world" }
	s.Apply(base, puts(joinedAgent(0), 1)...)
	s.Apply(base, puts(joinedAgent(1), 2)...)
	if at := s.Wake(); !at.Equal(base.Add(time.Second)) {
		t.Errorf("the last call ends at %v", at)
	}
	now := base.Add(500 * time.Millisecond)
	s.Apply(now, Change{run.Lost().Of("agent-1"), Loss{}, 3})
	if writes, _ := s.Apply(base.Add(time.Second)); world(writes) {
		t.Error("it starts with one agent")
	}
	now = base.Add(2 * time.Second)
	s.Apply(now, puts(joinedAgent(2), 4)...)
	if writes, _ := s.Apply(now.Add(time.Second)); !world(writes) {
		t.Errorf("%v, want the world", writes)
	}
}
