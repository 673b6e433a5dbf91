package rdzv

import (
	"testing"
	"time"
)

// The world says whether rank 0 has a head start. Its agent tells all when that is over.
func TestHeadStart(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	first, second := member(0), member(1)
	first.HeadStart, second.HeadStart = 200*time.Millisecond, time.Hour
	sessions := []*Session{j.join(first), j.join(second)}
	for _, w := range j.worlds(sessions) {
		if time.Duration(w.HeadStart) != 200*time.Millisecond {
			t.Errorf("the world has a head start of %v", w.HeadStart)
		}
	}
	select {
	case <-sessions[1].HeadStartOver():
		t.Error("it was over before rank 0's agent has said so")
	default:
	}
	if err := sessions[0].EndHeadStart(j.ctx); err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		select {
		case <-s.HeadStartOver():
		case <-j.ctx.Done():
			t.Fatal("an agent has not learned that it is over")
		}
	}
	j.finish(sessions, succeeded)
}
