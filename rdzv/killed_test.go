package rdzv

import (
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/presence"
)

// byHand is agent i of n without a launcher, on a host of its own.
func (j *job) byHand(i, n int) Config {
	c := j.leased(i, n)
	c.Self.Tasks, c.Self.LocalSize = Unplaced(1), Unknown
	c.Self.Node = c.Self.Host
	return c
}

// All agents of a job were killed, and it is started again before their leases expire.
func TestJobStartedAgain(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]int{"while it ran": 2, "while it waited": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := startPlain(t)
			var old []*Session
			for i := range killed {
				c := j.byHand(i, 2)
				old = append(old, j.joinWith(j.client(c.Self.ID), c))
			}
			if killed == 2 {
				j.worlds(old)
			}
			for _, s := range old {
				j.kill(s.config.Self.ID)
			}
			began, delayed := time.Now(), make(chan error, 2)
			joined := make(chan *Session, 2)
			for i := range 2 {
				c := j.byHand(i, 2)
				c.Self.ID += "-again"
				c.Delayed = func(reason error, atMost time.Duration) {
					if atMost > presence.MinTimeout {
						t.Errorf("at most %v", atMost)
					}
					select {
					case delayed <- reason:
					default: // an agent may wait more than once
					}
				}
				client := j.client(c.Self.ID)
				go func() { joined <- j.joinUntilAgreed(client, c) }()
			}
			next := []*Session{<-joined, <-joined}
			if next[0] == nil || next[1] == nil {
				t.Fatal("an agent has no world")
			}
			if took := time.Since(began); took > 2*presence.MinTimeout+2*time.Second {
				t.Errorf("joined after %v", took)
			}
			select {
			case err := <-delayed:
				if _, occupied := errors.AsType[*OccupiedError](err); err != ErrFull && !occupied {
					t.Errorf("delayed because %v", err)
				}
			default:
				t.Error("no agent says why it waits")
			}
			for i, sum := range j.finish(next, succeeded) {
				if sum.Verdict == nil || sum.Verdict.Kind != Done {
					t.Errorf("agent %d: %v", i, sum.Verdict)
				}
			}
		})
	}
}

// joinUntilAgreed joins, again if all agents look for the store again, and returns nil if there is no
// world.
func (j *job) joinUntilAgreed(client *clientv3.Client, c Config) *Session {
	for {
		s, err := Join(j.ctx, client, c)
		if err != nil {
			j.t.Error(err)
			return nil
		}
		j.leavesAtEnd(s)
		if _, err = s.World(j.ctx); err == nil {
			return s
		}
		if v, ended := errors.AsType[*Verdict](err); !ended || v.Kind != Moved {
			j.t.Error(err)
			return nil
		}
		_ = s.Settle(j.ctx, nil)
		_, _ = s.Leave(j.ctx)
		c.Self.ID += "-again"
	}
}

// Whoever is alive keeps its place.
func TestPlaceIsTaken(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	first := j.byHand(0, 2)
	s := j.joinWith(j.client(first.Self.ID), first)
	second := j.byHand(0, 2)
	second.Self.ID += "-again"
	_, err := Join(j.ctx, j.client(second.Self.ID), second)
	if o, occupied := errors.AsType[*OccupiedError](err); !occupied || o.PID != first.Self.PID {
		t.Errorf("%v, want that the host is occupied", err)
	}
	other := j.byHand(1, 2)
	sessions := []*Session{s, j.joinWith(j.client(other.Self.ID), other)}
	j.worlds(sessions)
	j.finish(sessions, succeeded)
	j.wantNothingLeft()
}
