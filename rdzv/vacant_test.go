package rdzv

import (
	"context"
	"errors"
	"testing"
	"time"

	"rdzv/rdzv/restart"
)

// outliving is agent i of 2, whose workers may outlive it.
func (j *job) outliving(i int, outlives time.Duration) Config {
	c := j.leased(i, 2)
	c.StoreTimeout, c.Outlives = 2*c.PeerTimeout, outlives
	c.jobTTL = 2 * testTimeout
	return c
}

// started is a job of two such agents that has a world.
func (j *job) started(outlives time.Duration) (all []*Session) {
	j.t.Helper()
	for i := range 2 {
		c := j.outliving(i, outlives)
		all = append(all, j.joinWith(j.client(c.Self.ID), c))
	}
	j.worlds(all)
	return all
}

// startedAgain lets others join the job, and returns a channel of what Join returns, one of why they
// wait, and one of how long at most.
func (j *job) startedAgain(ctx context.Context, n int, outlives time.Duration) (
	joined chan joinResult, delays chan delay,
) {
	j.t.Helper()
	joined, delays = make(chan joinResult, n), make(chan delay, 10)
	for i := range n {
		c := j.outliving(i, outlives)
		c.Self.ID += "-again"
		c.Delayed = func(reason error, atMost time.Duration) { delays <- delay{reason, atMost} }
		client := j.client(c.Self.ID)
		go func() {
			s, err := Join(ctx, client, c)
			joined <- joinResult{s, err}
		}()
	}
	return joined, delays
}

type joinResult struct {
	session *Session
	err     error
}

type delay struct {
	reason error
	atMost time.Duration
}

// awaitEarlier waits until an agent waits for the processes of an earlier run.
func (j *job) awaitEarlier(delays chan delay) (earlier *EarlierRunError, atMost time.Duration) {
	j.t.Helper()
	for {
		select {
		case d := <-delays:
			if e, is := errors.AsType[*EarlierRunError](d.reason); is {
				return e, d.atMost
			}
		case <-j.ctx.Done():
			j.t.Fatal("no agent waits for processes of an earlier run")
		}
	}
}

// worldOfNext is when the two agents that join have a world.
func (j *job) worldOfNext(joined chan joinResult) (at time.Time, next []*Session) {
	j.t.Helper()
	for range 2 {
		r := <-joined
		if r.err != nil {
			j.t.Fatal(r.err)
		}
		next = append(next, j.leavesAtEnd(r.session))
	}
	j.worlds(next)
	return time.Now(), next
}

// All agents are disconnected, or were killed. The next run begins when their workers must have
// ended: that depends on whether another attempt may follow theirs.
func TestRunOutlivesItsAgents(t *testing.T) {
	t.Parallel()
	const wait = 8 * time.Second
	for name, c := range map[string]struct {
		lead     LeaderConfig
		outlives time.Duration
	}{
		"no other attempt": {LeaderConfig{}, wait},
		// The lease of 6 s, which is the store timeout, the grace and 1 s.
		"another attempt": {
			LeaderConfig{Rules: Rules{Restarts: restart.Policy{Max: 1}}, LostGrace: time.Second}, time.Hour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := startLeased(t, c.lead)
			old := j.started(c.outlives)
			agents := old[0].registration.Run.Keys.Agents()
			for _, s := range old {
				j.lose(s)
			}
			for _, s := range old {
				j.await(agents.Of(s.config.Self.ID), false)
			}
			gone := time.Now()
			joined, delays := j.startedAgain(j.ctx, 2, c.outlives)
			earlier, atMost := j.awaitEarlier(delays)
			if earlier.Ending || earlier.Job != "test" || atMost > wait || atMost < wait-time.Second {
				t.Errorf("waits at most %v because %+v, want %v", atMost, earlier, wait)
			}
			began, next := j.worldOfNext(joined)
			if after := began.Sub(gone); after < wait {
				t.Errorf("the next run began %v after the agents were gone, want at least %v", after, wait)
			}
			j.finish(next, succeeded)
		})
	}
}

// All workers have ended when the agents are killed.
func TestRunThatHasSettledIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	old := j.started(time.Hour)
	for i, s := range old {
		j.settle(s, succeeded(i))
	}
	for _, s := range old {
		j.ended(s)
		select {
		case <-s.signals.Settled.Done():
		case <-j.ctx.Done():
			t.Fatal("the agents have not settled")
		}
	}
	for _, s := range old {
		j.lose(s)
	}
	joined, delays := j.startedAgain(j.ctx, 2, time.Hour)
	_, next := j.worldOfNext(joined)
	if len(delays) > 0 {
		t.Errorf("an agent waits: %+v", <-delays)
	}
	j.finish(next, succeeded)
}

// A run that a signal has ended is replaced when its agents have settled, not before.
func TestRunThatEndsIsReplacedWhenItHasSettled(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	old := j.started(time.Hour)
	if err := old[0].End(j.ctx, 15, true); err != nil {
		t.Fatal(err)
	}
	j.ended(old[1])
	joined, delays := j.startedAgain(j.ctx, 2, time.Hour)
	if earlier, _ := j.awaitEarlier(delays); !earlier.Ending {
		t.Errorf("%+v", earlier)
	}
	select {
	case r := <-joined:
		t.Errorf("an agent has joined: %+v", r)
	default:
	}
	j.finish(old, stopped)
	_, next := j.worldOfNext(joined)
	j.finish(next, succeeded)
	j.wantNothingLeft()
}

// The agents, whose leases have ended, register again while another one waits.
func TestAgentsReturnToTheirRun(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	old := j.started(time.Hour)
	for _, s := range old {
		j.lose(s)
	}
	joined, delays := j.startedAgain(j.ctx, 1, time.Hour)
	j.awaitEarlier(delays)
	for _, s := range old {
		j.revive(s.config.Self.ID)
	}
	if r := <-joined; r.err != ErrFull {
		t.Errorf("another agent: %+v", r)
	}
	for i, sum := range j.finish(old, succeeded) {
		if sum.Verdict == nil || sum.Verdict.Kind != Done || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	}
}

// An agent that may not wait so long says for what it has waited.
func TestJoinEndsWhileProcessesMayRun(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	for _, s := range j.started(time.Hour) {
		j.lose(s)
	}
	why := errors.New("the time is over")
	ctx, cancel := context.WithCancelCause(j.ctx)
	joined, delays := j.startedAgain(ctx, 1, time.Hour)
	j.awaitEarlier(delays)
	cancel(why)
	r := <-joined
	if _, is := errors.AsType[*EarlierRunError](r.err); !is || !errors.Is(r.err, why) {
		t.Errorf("%+v", r)
	}
}

// A spare leaves the job when the leases of all others were just revoked. They register again, and
// the job goes on.
func TestSpareLeavesWhenLeasesAreRevoked(t *testing.T) {
	t.Parallel()
	j, all := withSpare(t, startLeased, LeaderConfig{ReturnTime: 3 * time.Second})
	j.withdraws(all[3])
	if err := j.ended(all[3]); err != ErrWithdrawn {
		t.Fatal(err)
	}
	rest := all[:3]
	agents := all[0].registration.Run.Keys.Agents()
	for _, s := range rest {
		j.kill(s.config.Self.ID)
		if _, err := j.admin.Revoke(j.ctx, s.registration.Lease()); err != nil {
			t.Fatal(err)
		}
		j.await(agents.Of(s.config.Self.ID), false)
	}
	if _, err := all[3].Leave(j.ctx); err != ErrWithdrawn {
		t.Error(err)
	}
	for _, s := range rest {
		j.revive(s.config.Self.ID)
	}
	for i, sum := range j.finish(rest, succeeded) {
		if sum.Verdict == nil || sum.Verdict.Kind != Done || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	}
	j.wantNothingLeft()
}
