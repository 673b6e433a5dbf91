package rdzv

import (
	"context"
	"testing"
	"time"

	"rdzv/rdzv/internal/record"
)

func TestJoinAfterStartOrEnd(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	sessions := j.agents(2)
	j.worlds(sessions)
	late := member(2)
	if _, err := Join(j.ctx, j.client("late"), Config{Job: "test", Self: late}); err != ErrFull {
		t.Errorf("joining a job that runs: %v", err)
	}
	j.finish(sessions, succeeded)
	late.ID = "later"
	if _, err := Join(j.ctx, j.client("later"), Config{Job: "test", Self: late}); err != ErrClosed {
		t.Errorf("joining a job that has ended: %v", err)
	}
	if err := j.store.Drain(j.ctx); err != nil {
		t.Errorf("a rejected agent is still registered: %v", err)
	}
}

// An extra agent joins before the world is written.
func TestExtraAgentJoinsWithTheLastOne(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	sessions := j.agents(2)
	w := j.worlds(sessions)[0]
	world := sessions[0].keys.World()
	if _, err := j.admin.Delete(j.ctx, world); err != nil {
		t.Fatal(err)
	}
	extra := j.join(member(2))
	j.put(world, record.Encode(w))
	if _, err := extra.World(j.ctx); err != ErrFull {
		t.Errorf("World: %v", err)
	}
	within5s(t, "leaving", func() {
		if _, err := extra.Leave(j.ctx); err != ErrFull {
			t.Errorf("Leave: %v", err)
		}
	})
	for i, sum := range j.finish(sessions, succeeded) {
		if sum.Verdict.Kind != Done {
			t.Errorf("agent %d: %v", i, sum.Verdict)
		}
	}
}

// A deadline that has expired when its agent joins ends the job at once.
func TestDeadlineInThePast(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j := start(t, LeaderConfig{Tasks: 2})
		s := j.joinUntil(time.Now().Add(-time.Second), member(0))
		if v, ok := j.ended(s).(*Verdict); !ok || v.Kind != Incomplete {
			t.Errorf("ended with %v", context.Cause(s.Context()))
		}
		j.settle(s)
		j.leave(s)
	})
}
