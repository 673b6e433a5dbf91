package rdzv

import (
	"errors"
	"testing"
)

// All agents of a store move to another one before the world is agreed.
func TestMove(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 3})
	sessions := j.agents(2) // the third is in the other store
	if moved, err := sessions[0].Move(j.ctx); !moved || err != nil {
		t.Fatal(moved, err)
	}
	for i, s := range sessions {
		_, err := s.World(j.ctx)
		var v *Verdict
		if !errors.As(err, &v) || v.Kind != Moved ||
			v.Error() != "all agents look for the store again" {
			t.Errorf("agent %d: %v", i, err)
		}
	}
	each(sessions, func(i int, s *Session) {
		j.settle(s)
		if sum := j.leave(s); !sum.Settled || sum.Verdict.Kind != Moved {
			t.Errorf("agent %d: %+v", i, sum)
		}
	})
	if err := <-j.led; err != nil {
		t.Errorf("the leader: %v", err)
	}
}

// A job whose world is agreed does not move.
func TestNoMoveAfterTheWorld(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	sessions := j.agents(2)
	j.worlds(sessions)
	if moved, err := sessions[0].Move(j.ctx); moved || err != nil {
		t.Fatal(moved, err)
	}
	for i, sum := range j.finish(sessions, succeeded) {
		if sum.Verdict.Kind != Done {
			t.Errorf("agent %d: %+v", i, sum.Verdict)
		}
	}
}
