package rdzv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/restart"
)

// restartable joins n agents of a job with restarts.
func (p *plain) restartable(n, restarts int) []*Session {
	p.t.Helper()
	sessions := make([]*Session, n)
	for i := range sessions {
		c := p.config(i, n)
		c.Lead.Restarts = restart.Policy{Max: restarts}
		sessions[i] = p.joinWith(p.client(c.Self.ID), c)
	}
	return sessions
}

func TestRestartsInPlainStore(t *testing.T) {
	t.Parallel()
	const n, attempts = 3, 20
	p := startPlain(t)
	sessions := p.restartable(n, attempts)
	first := p.worlds(sessions)
	leads := sessions[0].registration.(*leased)
	agents := p.createRevisions(leads.run.agents())
	for attempt := 1; attempt <= attempts; attempt++ {
		p.failAttempt(sessions, "", restart.Soon)
		for i := n - 1; i >= 0; i-- {
			sessions[i] = p.next(i, sessions[i])
		}
		for i, w := range p.worlds(sessions) {
			if w.Attempt != attempt || w.Seat != first[i].Seat || !w.Began.Equal(first[i].Began) ||
				w.MaxRestarts != attempts {
				t.Fatalf("agent %d, attempt %d: %+v", i, attempt, w)
			}
			if sessions[i].Leads() != (i == 0) {
				t.Errorf("agent %d leads attempt %d: %t", i, attempt, i != 0)
			}
		}
	}
	p.await(leads.run.ofAttempt(attempts-1).settled(), false)
	if now := p.createRevisions(leads.run.agents()); !slices.Equal(agents, now) {
		t.Errorf("the agents were created at %v, now at %v", agents, now)
	}
	// The job's run, its attempt, the first world, the world, and for each agent: itself, its member
	// and its seat.
	if left := p.keysLeft(); len(left) != 4+3*n {
		t.Errorf("keys: %q", left)
	}
	for i, sum := range p.finish(sessions, succeeded) {
		if sum.Verdict.Kind != Done || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	}
	p.wantNothingLeft()
}

// createRevisions are those of all keys with a prefix.
func (p *plain) createRevisions(prefix string) (revisions []int64) {
	p.t.Helper()
	found, err := p.admin.Get(p.ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		p.t.Fatal(err)
	}
	for _, kv := range found.Kvs {
		revisions = append(revisions, kv.CreateRevision)
	}
	return revisions
}

// lossPoints are when the leader of a job can be lost that has failed once.
var lossPoints = map[string]func(p *plain, all []*Session){
	"when all have settled": func(p *plain, all []*Session) {},
	"before the others join": func(p *plain, all []*Session) {
		all[0] = p.next(0, all[0])
	},
	"when the others have joined": func(p *plain, all []*Session) {
		p.nextOfAll(all[1:])
	},
	"during the delay": func(p *plain, all []*Session) {
		p.nextOfAll(all)
		p.worlds(all)
		p.failAttempt(all, "y", 0)
		p.nextOfAll(all)
	},
	"between the seats and the world": func(p *plain, all []*Session) {
		p.nextOfAll(all[1:])
		for i, s := range all[1:] {
			if err := s.put(p.ctx, s.keys.seat(s.config.Self.ID),
				encode(seatValue{Seat: Seat{Rank: 2 - i, Slots: 1}}), s.leases.job); err != nil {
				p.t.Fatal(err)
			}
		}
	},
	"when workers run": func(p *plain, all []*Session) {
		p.nextOfAll(all)
		p.worlds(all)
	},
}

// nextOfAll joins all agents to the next attempt that have left theirs.
func (p *plain) nextOfAll(all []*Session) {
	p.t.Helper()
	for i, s := range all {
		if s.summary.Restart == nil {
			continue
		}
		next, err := s.Next(p.ctx, s.config.Self, time.Time{})
		if err != nil {
			p.t.Fatal(err)
		}
		all[i] = next
	}
}

// The leader is frozen until its lease has expired, and continues. Whenever that happens, the job
// ends on all agents, and the old leader writes nothing.
func TestLeaderIsLostBetweenAttempts(t *testing.T) {
	t.Parallel()
	for name, until := range lossPoints {
		t.Run(name, func(t *testing.T) {
			p := startPlain(t)
			all := p.restartable(3, 9)
			p.worlds(all)
			p.failAttempt(all, "x", 0)
			until(p, all)
			p.expire(all[0])
			p.nextOfAll(all)
			for _, s := range all[1:] {
				wantLost(t, p.ended(s), "the agent of rank 0 (pid 1000 on node0)")
			}
			if err := p.ended(all[0]); !errors.Is(err, ErrStoreLost) && !isLost(err) {
				t.Errorf("the old leader: %v", err)
			}
			for i, sum := range p.finish(all[1:], stopped) {
				if sum.Verdict == nil || sum.Verdict.Kind != Lost || !sum.Settled || sum.Restart != nil {
					t.Errorf("agent %d: %+v", i+1, sum)
				}
			}
			_, _ = all[0].Leave(p.ctx) // whatever it knows
			p.wantNothingLeft()
		})
	}
}

func isLost(err error) bool {
	v, ok := errors.AsType[*Verdict](err)
	return ok && v.Kind == Lost
}

// The leader is lost after a failure, before all have settled: there is no other attempt.
func TestLeaderIsLostBeforeTheDecision(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.restartable(3, 9)
	p.worlds(all)
	if err := all[1].Fail(p.ctx, Worker{Rank: 1, Code: 7}); err != nil {
		t.Fatal(err)
	}
	p.ended(all[2])
	p.lose(all[0])
	failed := func(i int) Worker { return []Worker{{Rank: 1, Code: 7}, stopped(2)}[i] }
	for i, sum := range p.finish(all[1:], failed) {
		if sum.Verdict.Kind != Failed || sum.Restart != nil || sum.NoRestart != restart.Lost {
			t.Errorf("agent %d: %+v", i+1, sum)
		}
	}
	p.wantNothingLeft()
}

// A leader of a later attempt whose agent is gone can write nothing.
func TestDeposedLeaderOfALaterAttempt(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.restarted2(2)
	r := all[0].registration.(*leased)
	c, _, err := r.awaitTurn(p.ctx)
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.resume(p.ctx, c, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.cancel()
	l.client = p.admin
	p.lose(all[0])
	for what, write := range map[string]func() error{
		"verdict": func() error { return l.writeVerdict(p.ctx, verdictOf(Done)) },
		"world":   func() error { _, err := l.publish(p.ctx, World{Job: "test"}); return err },
		"forget":  func() error { return l.forgetPrevious(p.ctx) },
		"settled": func() error {
			v := verdictOf(Failed)
			l.verdict = &v
			defer func() { l.verdict = nil }()
			return l.writeSettled(p.ctx, l, restart.Decision{Restart: true})
		},
	} {
		if err := write(); !errors.Is(err, errDeposed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantLost(t, p.ended(all[1]), "the agent of rank 0 (pid 1000 on node0)")
	p.finish(all[1:], stopped)
}

// restarted2 are n agents in the second attempt of a job, whose first one has failed early with "x".
func (p *plain) restarted2(n int) []*Session {
	p.t.Helper()
	all := p.restartable(n, 9)
	p.worlds(all)
	all = p.restarted(all, "x")
	p.worlds(all)
	return all
}

// What a new leader knows of the attempts before is what the old one knew.
func TestNewLeaderOfALaterAttempt(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.restartable(3, 9)
	began := p.worlds(all)[0].Began
	resume := func() *Leader {
		r := all[0].registration.(*leased)
		c, _, err := r.awaitTurn(p.ctx)
		if err != nil {
			t.Fatal(err)
		}
		l, err := r.resume(p.ctx, c, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.cancel()
		return l
	}
	check := func(state string, away bool, complete bool, failures ...restart.Failure) *Leader {
		l := resume()
		if l.config.Attempt != len(failures) || !slices.Equal(l.failures, failures) ||
			!l.began.Equal(began) || l.complete != complete || len(l.joined) != 3 {
			t.Errorf("%s: %+v", state, l)
		}
		for i, m := range l.joined {
			if m.ID != member(i).ID || m.seat.Rank != i || m.away != away || m.lost || m.Host == "" {
				t.Errorf("%s: member %d: %+v", state, i, m)
			}
		}
		return l
	}
	check("first attempt", false, true)
	all = p.restarted(all, "x")
	p.worlds(all)
	x := restart.Failure{Code: 1, Message: "x"}
	check("second attempt", false, true, x)
	p.failAttempt(all, "y", 0)
	silent, y := restart.Failure{Code: 1}, restart.Failure{Code: 1, Message: "y"}
	l := check("announced", true, false, silent, y)
	if delay := time.Until(l.startAt); delay <= 0 || delay > 2*time.Second {
		t.Errorf("it starts the workers in %v", delay)
	}
	for i := range all {
		all[i] = p.next(i, all[i])
	}
	p.worlds(all)
	p.finish(all, succeeded)
	p.wantNothingLeft()
}

// The store ends the watch of the leader in the second attempt. It begins again, and counts the
// failure before.
func TestPolicyCountsAcrossWatches(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.restarted2(3)
	p.kill(all[0].config.Self.ID)
	if err := all[2].Fail(p.ctx, Worker{Rank: 2, Code: 1, Text: "x"}); err != nil {
		t.Fatal(err)
	}
	p.ended(all[2])
	p.compact()
	p.revive(all[0].config.Self.ID)
	workers := []Worker{stopped(0), stopped(1), {Rank: 2, Code: 1, Text: "x"}}
	for i, sum := range p.finish(all, func(i int) Worker { return workers[i] }) {
		if sum.Restart != nil || sum.NoRestart != restart.Repeated || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	}
	p.wantNothingLeft()
}

// An agent too many is refused in every attempt, and between them. It begins a new run only when
// there is no other attempt.
func TestPlainStoreIsFullInLaterAttempts(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	late := func() error {
		_, err := Join(p.ctx, p.client("agent-9"), p.config(9, 2))
		return err
	}
	wantFull := func(when string) {
		t.Helper()
		if err := late(); err != ErrFull {
			t.Errorf("%s: %v", when, err)
		}
	}
	all := p.restartable(2, 1)
	p.worlds(all)
	if err := all[0].Fail(p.ctx, Worker{Code: 1}); err != nil {
		t.Fatal(err)
	}
	p.ended(all[1])
	wantFull("before the decision")
	p.failAttempt(all, "", 0)
	wantFull("after the decision")
	for i := range all {
		all[i] = p.next(i, all[i])
	}
	wantFull("in the second attempt")
	p.worlds(all)
	if err := all[0].Fail(p.ctx, Worker{Code: 1}); err != nil {
		t.Fatal(err)
	}
	p.ended(all[1])
	next := []*Session{p.joinLeased(2, 2), p.joinLeased(3, 2)}
	p.worlds(next)
	p.finish(all, func(i int) Worker { return Worker{Rank: i, Code: 1} })
	for i, sum := range p.finish(next, succeeded) {
		if sum.Verdict.Kind != Done {
			t.Errorf("agent %d of the next job: %v", i, fmt.Sprint(sum.Verdict))
		}
	}
	p.wantNothingLeft()
}

// A signal ends the second attempt before its world is published: what the first one was remains,
// because a new leader would have to know it.
func TestPreviousAttemptWithoutWorld(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.restartable(2, 9)
	p.worlds(all)
	p.failAttempt(all, "x", 0)
	p.nextOfAll(all[1:])
	r := all[0].registration.(*leased)
	c, _, err := r.awaitTurn(p.ctx)
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.resume(p.ctx, c, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.cancel()
	if err := all[1].End(p.ctx, 15, false); err != nil {
		t.Fatal(err)
	}
	if err := l.agree(p.ctx); err != nil {
		t.Fatal(err)
	}
	before := p.createRevisions(l.previous.prefix)
	if len(before) < 4 {
		t.Errorf("%d keys of the attempt before are left", len(before))
	}
	p.nextOfAll(all)
	p.ended(all[0])
	p.finish(all, stopped)
	p.wantNothingLeft()
}

// The store is not available for a moment when the leader has agreed on the world of the second
// attempt.
func TestForgetPreviousIsRetried(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	c := p.config(0, 1)
	c.Lead.Restarts = restart.Policy{Max: 1}
	client := p.client(c.Self.ID)
	kv := &failingKV{KV: client.KV}
	client.KV = kv
	all := []*Session{p.joinWith(client, c)}
	p.worlds(all)
	kv.fails.Store(all[0].keys.settled())
	p.failAttempt(all, "x", 0)
	all[0] = p.next(0, all[0])
	p.worlds(all)
	for i, sum := range p.finish(all, succeeded) {
		if sum.Verdict == nil || sum.Verdict.Kind != Done || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	}
	if kv.fails.Load() != "" {
		t.Error("no request has failed")
	}
}

// failingKV lets the first Get of a key fail.
type failingKV struct {
	clientv3.KV
	fails atomic.Value // the key; "" when it has failed
}

func (f *failingKV) Get(
	ctx context.Context, key string, opts ...clientv3.OpOption,
) (*clientv3.GetResponse, error) {
	if f.fails.CompareAndSwap(key, "") {
		return nil, rpctypes.ErrLeaderChanged
	}
	return f.KV.Get(ctx, key, opts...)
}
