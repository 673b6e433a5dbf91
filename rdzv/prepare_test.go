package rdzv

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// An agent that completes its member later is known meanwhile, and has its place.
func TestPrepare(t *testing.T) {
	known, release := make(chan struct{}), make(chan struct{})
	j := start(t, LeaderConfig{Tasks: 2,
		Notify: func(n Notice) {
			if r, is := n.(Waiting); is && r.Joined == 1 && len(r.Waiting) == 1 && r.Waiting[0] == "node1 waits: for a file" {
				select {
				case <-known:
				default:
					close(known)
				}
			}
		},
		NextWaiting: func(last time.Duration) time.Duration { return last + 10*time.Millisecond },
	})
	first := member(0)
	first.Hosting = true
	sessions := []*Session{j.join(first), nil}
	self := member(1)
	self.Node, self.Tasks = "host", Unplaced(3)
	joined := make(chan *Session)
	go func() {
		joined <- j.joinWith(j.client(self.ID), Config{Job: "test", Self: self, Waits: "for a file",
			Prepare: func(context.Context) (Member, error) {
				<-release
				self.Tasks = Unplaced(1)
				return self, nil
			}})
	}()
	<-known
	other := member(2)
	other.Node = self.Node
	if _, err := Join(j.ctx, j.client(other.ID), Config{Job: "test", Self: other}); err == nil {
		t.Error("another agent joined in its place")
	}
	close(release)
	sessions[1] = <-joined
	each(sessions, func(_ int, s *Session) {
		w, err := s.World(j.ctx)
		if err != nil || w.Size != 2 {
			t.Errorf("World: %+v, %v; want 2 ranks", w, err)
		}
	})
	j.finishWell(sessions)
}

// An agent that cannot complete its member ends the job for all, as one that is lost while joining.
func TestPrepareFails(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	first := member(0)
	first.Hosting = true
	s := j.join(first)
	enough := errors.New("enough")
	_, err := Join(j.ctx, j.client("agent-1"), Config{Job: "test", Self: member(1), Waits: "for a file",
		Prepare: func(context.Context) (Member, error) { return Member{}, enough }})
	if !errors.Is(err, enough) {
		t.Errorf("Join: %v, want %v", err, enough)
	}
	if _, err := s.World(j.ctx); err == nil || !strings.Contains(err.Error(), "was joining") {
		t.Errorf("World: %v, want the loss of an agent that was joining", err)
	}
	j.settle(s)
	j.leave(s)
}
