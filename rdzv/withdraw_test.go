package rdzv

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"rdzv/rdzv/restart"
)

func (j *job) withdraws(s *Session) {
	j.t.Helper()
	if err := s.Withdraw(j.ctx, false); err != nil {
		j.t.Fatal(err)
	}
}

// endsBy checks that the attempt ends by SIGTERM at one agent, which may have left the job.
func (j *job) endsBy(sessions []*Session, withdrawn bool) {
	j.t.Helper()
	for _, s := range sessions {
		v, _ := j.ended(s).(*Verdict)
		if v == nil || v.Kind != Ended || v.Signal != 15 || v.Withdrawn != withdrawn {
			j.t.Fatalf("%s was told %+v", s.config.Self.ID, v)
		}
	}
}

// settleWorking settles the agents that have workers.
func (j *job) settleWorking(sessions []*Session) {
	j.t.Helper()
	for i, s := range sessions {
		if !s.seat.Load().Spare {
			j.settle(s, stopped(i))
		}
	}
}

// withSpare is a job of the agents 0 to 2, and 3 as their spare.
func withSpare(t *testing.T, start starter, c LeaderConfig) (*job, []*Session) {
	t.Helper()
	c.Tasks, c.Spares, c.Restarts = 4, 1, restart.Policy{Max: 2}
	j := start(t, c)
	all := j.withSpares(4)
	j.worlds(all)
	return j, all
}

// An agent leaves, and a spare takes over its seat; the next one that is to leave ends the job.
func TestAgentWithdraws(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j, all := withSpare(t, start, LeaderConfig{})
		j.withdraws(all[1])
		j.endsBy(all, true)
		if at := all[2].OtherWithdrew(); time.Since(at) > time.Minute || !all[1].OtherWithdrew().IsZero() {
			t.Errorf("another agent withdrew at %v, and for itself at %v", at, all[1].OtherWithdrew())
		}
		j.settleWorking(all)
		if sum := j.leave(all[1]); !sum.Withdrawn || sum.Code != 143 || !sum.Settled {
			t.Errorf("agent 1: %+v", sum)
		}
		var rest []*Session
		for _, i := range []int{0, 2, 3} {
			rest = append(rest, j.nextOf(i, all[i]))
		}
		for i, w := range j.worlds(rest) {
			if w.Seat.First() != []int{0, 2, 1}[i] || len(w.Replaced) != 1 || w.Replaced[0].Host != "node3" {
				t.Errorf("agent %d of attempt 1: %+v", i, w)
			}
		}
		j.withdraws(rest[1])
		j.endsBy(rest, false)
		for _, sum := range j.finish(rest, stopped) {
			if sum.Restart != nil || sum.Withdrawn || sum.Code != 143 {
				t.Errorf("%+v", sum)
			}
		}
	})
}

// These end the job, as SIGTERM does without spares.
func TestWithdrawalEndsTheJob(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		for name, do := range map[string]func(j *job, all []*Session, lost <-chan error){
			"two agents": func(j *job, all []*Session, _ <-chan error) {
				j.withdraws(all[1])
				if err := all[2].End(j.ctx, 15, false); err != nil {
					j.t.Fatal(err)
				}
				j.settleWorking(all)
			},
			"no spare is left": func(j *job, all []*Session, lost <-chan error) {
				j.lose(all[3])
				<-lost
				j.withdraws(all[1])
				j.settleWorking(all[:3])
			},
			"its workers do not end": func(j *job, all []*Session, _ <-chan error) {
				j.withdraws(all[1])
				j.settleWorking(append(all[:1:1], all[2:]...))
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				lost := make(chan error, 1)
				j, all := withSpare(t, start, LeaderConfig{
					SettleTimeout: time.Second, Notify: func(n Notice) { lost <- n.(Warning).Err },
				})
				do(j, all, lost)
				for _, s := range all[:3] {
					if sum := j.leave(s); sum.Restart != nil || sum.Withdrawn || sum.Verdict.Kind != Ended {
						t.Errorf("%s: %+v", s.config.Self.ID, sum)
					}
				}
			})
		}
	})
}

// The host of the store cannot leave, and says so.
func TestHostOfStoreWithdraws(t *testing.T) {
	j, all := withSpare(t, start, LeaderConfig{})
	j.withdraws(all[0])
	j.endsBy(all, false)
	if v := all[2].Verdict(); v.Text != "this agent hosts the store" {
		t.Errorf("verdict %+v", v)
	}
	j.settleWorking(all)
	j.leave(all[0])
}

// An agent that leaves, and is lost before its workers have ended, is replaced too.
func TestWithdrawnAgentIsLost(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j, all := withSpare(t, start, LeaderConfig{})
		j.withdraws(all[1])
		j.endsBy(all, true)
		j.lose(all[1])
		rest := []*Session{all[0], all[2], all[3]}
		j.settleWorking(rest)
		for i, s := range rest {
			rest[i] = j.nextOf([]int{0, 2, 3}[i], s)
		}
		j.worlds(rest)
		j.finish(rest, succeeded)
	})
}

// An agent without workers leaves at once: a spare, one that has joined the next attempt, or that is
// about to.
func TestIdleAgentWithdraws(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		for name, test := range map[string]struct {
			leaves  int
			between bool // two attempts
			warning string
		}{
			"a spare":          {3, false, "lost the spare on node3 (pid 1003): it received SIGTERM"},
			"a spare, between": {3, true, "lost the spare on node3 (pid 1003): it received SIGTERM"},
			"another, between": {1, true, "node1 leaves the job: received SIGTERM; node3 takes its place"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				warnings := make(chan error, 1)
				j, all := withSpare(t, start, LeaderConfig{Notify: into(warnings)})
				var rest []*Session
				if test.between {
					for i, sum := range j.failAttempt(all[:3], "x", 0) {
						if sum.Restart == nil {
							t.Fatalf("agent %d: %+v", i, sum)
						}
					}
					all[test.leaves] = j.nextOf(test.leaves, all[test.leaves])
				}
				j.withdraws(all[test.leaves])
				if err := j.ended(all[test.leaves]); err != ErrWithdrawn {
					t.Errorf("its session ended with %v", err)
				}
				if _, err := all[test.leaves].Leave(j.ctx); err != ErrWithdrawn {
					t.Errorf("it left with %v", err)
				}
				if err := <-warnings; !strings.Contains(err.Error(), test.warning) {
					t.Errorf("warning %q, want %q", err, test.warning)
				}
				for i, s := range all {
					if i != test.leaves {
						rest = append(rest, s)
					}
				}
				if test.between {
					for i, s := range rest {
						var n int
						fmt.Sscanf(s.config.Self.ID, "agent-%d", &n)
						rest[i] = j.nextOf(n, s)
					}
					j.worlds(rest)
				}
				for _, sum := range j.finish(rest, succeeded) {
					if sum.Verdict.Kind != Done {
						t.Errorf("%+v", sum)
					}
				}
			})
		}
	})
}

// An agent that leaves while its world arrives has no seat, or a verdict that ends its workers: never
// both.
func TestWithdrawalRacesWithTheWorld(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j, all := withSpare(t, start, LeaderConfig{})
		j.failAttempt(all[:3], "x", 0)
		next := make([]*Session, 4)
		for i := range all {
			next[i] = j.nextOf(i, all[i])
		}
		done := make(chan error, 1)
		go func() { done <- next[2].Withdraw(j.ctx, false) }()
		_, err := next[2].World(j.ctx)
		if withdrawErr := <-done; withdrawErr != nil {
			t.Fatal(withdrawErr)
		}
		cause := j.ended(next[2])
		switch v, _ := errors.AsType[*Verdict](cause); {
		case err == ErrWithdrawn && cause == ErrWithdrawn: // before it had a seat
		case v != nil && v.Withdrawn && v.By == "agent-2":
		default:
			t.Errorf("the world: %v; the end: %v", err, cause)
		}
	})
}
