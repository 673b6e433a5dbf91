package rdzv

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"rdzv/internal/boottime"
	"rdzv/rdzv/internal/registration"
	"rdzv/rdzv/presence"
	"rdzv/rdzv/restart"
)

const testLostGrace = time.Second

// renewals is until when an agent knows that it is not lost.
type renewals struct{ until atomic.Int64 }

func (r *renewals) renewed(until time.Duration) { r.until.Store(int64(until)) }

// awaitAnother waits for a later time than the present one.
func (r *renewals) awaitAnother(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(testTimeout)
	for first := r.until.Load(); r.until.Load() <= first; {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("the agent does not renew its presence")
		}
	}
}

// clear is when no worker of the agent can run any more, if it is lost by silence.
func (r *renewals) clear() time.Duration { return time.Duration(r.until.Load()) + testLostGrace }

// lostMargin is how much longer the leader waits than the processes of a lost agent may run.
const lostMargin = time.Second

// The next attempt begins when no process of a lost agent can run any more: soon if the end of its
// connection proves that, otherwise after the time in which it takes itself for lost.
func TestNextAttemptAwaitsLostWorkers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose func(j *job, id string)
		runs bool // its workers may run as long as their lease
		why  string
	}{
		"killed": {(*job).kill, false, "it disconnected unexpectedly"},
		"reset": {func(j *job, id string) {
			j.mu.Lock()
			j.dead[id] = true
			j.mu.Unlock()
			j.reset(id)
		}, true, "it disconnected unexpectedly"},
		"silent": {(*job).freeze, true, "it was silent for 3s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := startWith(t, LeaderConfig{
				Tasks: 4, Rules: Rules{Spares: 1, Restarts: restart.Policy{Max: 1}}, PeerTimeout: presence.MinTimeout, LostGrace: testLostGrace,
			}, presence.MinTimeout)
			var r renewals
			all := j.withSpares(2)
			all = append(all, j.joinWith(j.client("agent-2"),
				Config{Job: "test", Self: hosted(2), Renewed: r.renewed}), j.join(hosted(3)))
			for _, w := range j.worlds(all) {
				if w.PeerTimeout != Seconds(presence.MinTimeout) || w.LostGrace != Seconds(testLostGrace) ||
					!w.MayRestart() {
					t.Fatalf("world %+v", w)
				}
			}
			r.awaitAnother(t)
			r.awaitAnother(t)
			lost, at := all[2], boottime.Now()
			c.lose(j, "agent-2")
			wantLostBecause(t, j.ended(all[0]), "the agent of rank 2 (pid 1002 on node2)", c.why)
			if now := boottime.Now(); name == "silent" && now < time.Duration(r.until.Load()) {
				t.Errorf("the agent was lost %v before it could know that", time.Duration(r.until.Load())-now)
			}
			rest := []*Session{all[0], all[1], all[3]}
			j.settleWorking(rest)
			for i, s := range rest {
				rest[i] = j.nextOf([]int{0, 1, 3}[i], s)
			}
			j.worlds(rest)
			began, clear := boottime.Now(), at+lostMargin
			if c.runs {
				clear = r.clear()
			}
			if began < clear {
				t.Errorf("the next attempt began %v too early", clear-began)
			}
			if !c.runs && began-at > lostMargin+testLostGrace {
				t.Errorf("the next attempt began %v after the agent was killed", began-at)
			}
			select {
			case <-lost.Presence().Done():
			case <-j.ctx.Done():
				t.Error("the lost agent does not know that it is lost")
			}
			for _, w := range j.worlds(rest) {
				if w.MayRestart() {
					t.Errorf("another attempt may follow the last one: %+v", w)
				}
			}
			j.finish(rest, succeeded)
		})
	}
}

// The same with leases. The leader, or another agent, is disconnected, or its lease is revoked.
func TestNextAttemptAwaitsLostWorkersInPlainStore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		victim int
		lose   func(j *job, s *Session)
	}{
		"leader": {0, func(j *job, s *Session) { j.kill(s.config.Self.ID) }},
		"other":  {1, func(j *job, s *Session) { j.kill(s.config.Self.ID) }},
		"revoked": {1, func(j *job, s *Session) {
			j.kill(s.config.Self.ID) // otherwise it registers again
			if _, err := j.admin.Revoke(j.ctx, s.registration.Lease()); err != nil {
				j.t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := startPlain(t)
			var all []*Session
			var r renewals
			for i := range 3 {
				config := j.replacing(i, 3, 1)
				config.Lead.LostGrace = testLostGrace
				if i == c.victim {
					config.Renewed = r.renewed
				}
				all = append(all, j.joinWith(j.client(config.Self.ID), config))
			}
			for _, w := range j.worlds(all) {
				if w.PeerTimeout != 0 || time.Duration(w.LostGrace) != testLostGrace {
					t.Fatalf("world %+v", w)
				}
			}
			r.awaitAnother(t)
			at := boottime.Now()
			c.lose(j, all[c.victim])
			t.Cleanup(func() { all[c.victim].close(errLeft, registration.Nothing) })
			rest := slices.Delete(slices.Clone(all), c.victim, c.victim+1)
			j.ended(rest[0])
			if now := boottime.Now(); name != "revoked" && now < time.Duration(r.until.Load()) {
				t.Errorf("the agent was lost %v before it could know that", time.Duration(r.until.Load())-now)
			}
			j.settleWorking(rest)
			for _, s := range rest {
				j.leave(s)
			}
			j.nextOfAll(rest)
			j.worlds(rest)
			clear := r.clear()
			if name == "revoked" {
				clear = at + testLostGrace + lostMargin
			}
			if began := boottime.Now(); began < clear {
				t.Errorf("the next attempt began %v too early", clear-began)
			}
			j.revive(all[c.victim].config.Self.ID)
			j.finish(rest, succeeded)
		})
	}
}
