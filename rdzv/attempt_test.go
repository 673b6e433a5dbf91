package rdzv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/restart"
)

// failAttempt ends the attempt of these sessions by a failure of the first one's worker, some time
// after its start, and returns their summaries.
func (j *job) failAttempt(sessions []*Session, text string, took time.Duration) []Summary {
	j.t.Helper()
	failed := func(i int) Worker {
		if i > 0 {
			return stopped(i)
		}
		return Worker{Code: 1, PID: 2000, Text: text, RanFor: Seconds(took)}
	}
	if err := sessions[0].Fail(j.ctx, failed(0)); err != nil {
		j.t.Fatal(err)
	}
	return j.finish(sessions, failed)
}

// next joins an agent to the next attempt.
func (j *job) next(i int, s *Session) *Session {
	j.t.Helper()
	m := member(i)
	m.Hosting = s.config.Self.Hosting
	return j.nextAs(s, m)
}

// nextAs joins an agent to the next attempt as this member.
func (j *job) nextAs(s *Session, m Member) *Session {
	j.t.Helper()
	next, err := s.Next(j.ctx, m, time.Time{})
	if err != nil {
		j.t.Fatal(err)
	}
	return j.leavesAtEnd(next)
}

// restarted fails the attempt and joins all agents to the next one, the last one first.
func (j *job) restarted(sessions []*Session, text string) []*Session {
	j.t.Helper()
	for i, sum := range j.failAttempt(sessions, text, 0) {
		next := sum.Restart
		if next == nil || next.Attempt != sessions[i].config.Attempt+1 ||
			next.Attempt == 1 && next.Delay > 0 {
			j.t.Fatalf("agent %d: %+v", i, sum)
		}
	}
	next := make([]*Session, len(sessions))
	for i := len(sessions) - 1; i >= 0; i-- {
		next[i] = j.next(i, sessions[i])
	}
	return next
}

// keysOf counts the keys of an attempt.
func (j *job) keysOf(attempt int) int64 {
	j.t.Helper()
	found, err := j.admin.Get(j.ctx, j.run.Attempt(attempt).Prefix,
		clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		j.t.Fatal(err)
	}
	return found.Count
}

func TestSameAgentsFormTheNextAttempt(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		const n = 4
		j := start(t, LeaderConfig{Tasks: n, Rules: Rules{Restarts: restart.Policy{Max: 100}}})
		sessions := j.agents(n)
		first := j.worlds(sessions)
		agents := j.createRevisions(string(j.run.Agents()))
		for attempt := 1; attempt <= 3; attempt++ {
			sessions = j.restarted(sessions, fmt.Sprint("failure ", attempt))
			for i, w := range j.worlds(sessions) {
				want := first[i]
				want.Attempt = attempt
				if !reflect.DeepEqual(w, want) || w.MaxRestarts != 100 {
					t.Errorf("agent %d, attempt %d: world %+v, want %+v", i, attempt, w, want)
				}
			}
			j.awaitKeys(attempt - 1)
			if now := j.createRevisions(string(j.run.Agents())); len(now) != n || !slices.Equal(agents, now) {
				t.Errorf("the agents were created at %v, now at %v", agents, now)
			}
			if !sessions[0].Leads() || sessions[1].Leads() {
				t.Error("another agent leads than the first one")
			}
		}
		for i, sum := range j.finish(sessions, succeeded) {
			if sum.Verdict.Kind != Done || sum.Restart != nil || !sum.Settled {
				t.Errorf("agent %d: %+v", i, sum)
			}
		}
		j.wantLed()
		if j.store == nil {
			j.wantNothingLeft()
		} else if err := j.store.Drain(j.ctx); err != nil {
			t.Errorf("agents that are still registered: %v", err)
		}
	})
}

// Agents of many attempts, in which another one fails first each time and all join in another order,
// have the same seats, and the store has the keys of one attempt only. Writes for old attempts are
// repeated all the time.
func TestManyAttempts(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		const n = 8
		attempts := 40
		j := start(t, LeaderConfig{Tasks: n, Rules: Rules{Restarts: restart.Policy{Max: attempts}}})
		if j.store == nil {
			attempts = 10 // its files are synced to disk
		}
		sessions := j.agents(n)
		first := j.worlds(sessions)
		for attempt := 1; attempt <= attempts; attempt++ {
			failing := rand.IntN(n)
			order := rand.Perm(n)
			failed := append([]*Session{sessions[failing]}, slices.Delete(slices.Clone(sessions), failing,
				failing+1)...)
			j.failAttempt(failed, fmt.Sprint(attempt), restart.Soon)
			old := j.run.Attempt(attempt - 1)
			next := make([]*Session, n)
			for _, i := range order {
				j.put(old.Outcomes().Of(sessions[i].config.Self.ID), record.Encode(Outcome{Workers: []Worker{{Code: 9}}}))
				next[i] = j.next(i, sessions[i])
				if err := sessions[i].End(j.ctx, 15, true); err == nil {
					t.Fatal("a signal ended an attempt that its agent has left")
				}
			}
			for i, w := range j.worlds(next) {
				if w.Attempt != attempt || !reflect.DeepEqual(w.Seat, first[i].Seat) || !w.Began.Equal(first[i].Began) {
					t.Fatalf("agent %d, attempt %d: %+v", i, attempt, w)
				}
			}
			sessions = next
		}
		j.awaitKeys(attempts - 1)
		all, err := j.admin.Get(j.ctx, DefaultPrefix, clientv3.WithPrefix(),
			clientv3.WithCountOnly())
		if most := int64(3*n + 4); err != nil || all.Count > most {
			t.Errorf("%d keys are left, want at most %d (%v)", all.Count, most, err)
		}
		for i, sum := range j.finish(sessions, succeeded) {
			if sum.Verdict.Kind != Done {
				t.Errorf("agent %d: %v", i, sum.Verdict)
			}
		}
	})
}

// awaitKeys waits until the keys of an attempt are deleted, except for the first world.
func (j *job) awaitKeys(attempt int) {
	j.t.Helper()
	want := int64(0)
	if attempt == 0 {
		want = 1
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for j.keysOf(attempt) != want {
		select {
		case <-tick.C:
		case <-j.ctx.Done():
			j.t.Fatalf("%d keys of attempt %d are left", j.keysOf(attempt), attempt)
		}
	}
}

// What an agent writes in an attempt that is over does not concern the next one.
func TestAttemptsDoNotMix(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j := start(t, LeaderConfig{Tasks: 2, Rules: Rules{Restarts: restart.Policy{Max: 1}}})
		old := j.agents(2)
		j.worlds(old)
		sessions := j.restarted(old, "x")
		if err := old[1].Fail(j.ctx, Worker{Code: 9}); err == nil {
			t.Error("an agent failed in an attempt that it has left")
		}
		j.worlds(sessions)
		j.awaitKeys(0)
		late := j.run.Attempt(0)
		v := record.VerdictOf(Failed)
		j.put(late.Outcomes().Of("agent-1"), record.Encode(Outcome{Workers: []Worker{{Code: 9}}}))
		j.put(late.Verdict(), record.Encode(v))
		j.put(late.Settled(), record.Encode(record.Settled{}))
		for i, sum := range j.finish(sessions, succeeded) {
			if sum.Verdict.Kind != Done {
				t.Errorf("agent %d: %v", i, sum.Verdict)
			}
		}
	})
}

// An agent that is started while the job is in a later attempt is refused as in the first one.
func TestJoinDuringALaterAttempt(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2, Rules: Rules{Restarts: restart.Policy{Max: 1}}})
	first := j.agents(2)
	j.worlds(first)
	sessions := j.restarted(first, "x")
	j.worlds(sessions)
	j.awaitKeys(0)
	for attempt := range 2 {
		late := member(2 + attempt)
		_, err := Join(j.ctx, j.client(late.ID), Config{Job: "test", Attempt: attempt, Self: late})
		if err != ErrFull {
			t.Errorf("joining attempt %d: %v", attempt, err)
		}
	}
	j.finish(sessions, succeeded)
}

func TestNoRestart(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		for name, test := range map[string]struct {
			policy restart.Policy
			first  Worker
			want   restart.Reason
		}{
			"none allowed":   {restart.Policy{}, Worker{Code: 1}, ""},
			"exit code":      {restart.Policy{Max: 1, Never: []int{7}}, Worker{Code: 7}, restart.Code},
			"signal":         {restart.Policy{Max: 1, Never: []int{139}}, Worker{Signal: 11}, restart.Code},
			"agent's own":    {restart.Policy{Max: 1}, Worker{Code: 125}, restart.Code},
			"an MPI program": {restart.Policy{Max: 1}, Worker{Code: 1, MPI: true}, restart.MPI},
			"all restarts":   {restart.Policy{Max: 1}, Worker{Code: 1, Text: "y"}, restart.Exhausted},
			"the same again": {restart.Policy{Max: 9}, Worker{Code: 1, Text: "x"}, restart.Repeated},
		} {
			t.Run(name, func(t *testing.T) {
				j := start(t, LeaderConfig{Tasks: 2, Rules: Rules{Restarts: test.policy}})
				sessions := j.agents(2)
				j.worlds(sessions)
				if test.want == restart.Exhausted || test.want == restart.Repeated {
					sessions = j.restarted(sessions, "x")
					j.worlds(sessions)
				}
				if err := sessions[1].Fail(j.ctx, test.first); err != nil {
					t.Fatal(err)
				}
				sums := j.finish(sessions, func(i int) Worker {
					if i == 1 {
						return test.first
					}
					return stopped(i)
				})
				for i, sum := range sums {
					if sum.Restart != nil || sum.NoRestart != test.want || sum.Verdict.Kind != Failed {
						t.Errorf("agent %d: %+v", i, sum)
					}
				}
				if _, err := sessions[0].Next(j.ctx, member(0), time.Time{}); err == nil {
					t.Error("an agent joined an attempt that there is not")
				}
			})
		}
	})
}

// A message that another worker closed its connection says nothing about the program.
func TestConsequencesDoNotCountAsTheSameMessage(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j := start(t, LeaderConfig{Tasks: 1, Rules: Rules{Restarts: restart.Policy{Max: 2}}})
		sessions := j.agents(1)
		for range 2 {
			j.worlds(sessions)
			w := Worker{Code: 1, Text: "Connection closed by peer", ReportDelay: Seconds(time.Second)}
			if err := sessions[0].Fail(j.ctx, w); err != nil {
				t.Fatal(err)
			}
			if sum := j.finish(sessions, func(int) Worker { return w })[0]; sum.Restart == nil {
				t.Fatalf("%+v", sum)
			}
			sessions[0] = j.next(0, sessions[0])
		}
		if err := sessions[0].End(j.ctx, 2, false); err != nil { // during the delay
			t.Fatal(err)
		}
		j.finish(sessions, succeeded)
	})
}

// Before the second restart there is a delay. A signal ends the job at once meanwhile, also for an
// agent that joins the attempt after that.
func TestSignalDuringTheDelay(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		j := start(t, LeaderConfig{Tasks: 3, Rules: Rules{Restarts: restart.Policy{Max: 2}}})
		sessions := j.agents(3)
		j.worlds(sessions)
		sessions = j.restarted(sessions, "x")
		j.worlds(sessions)
		if sum := j.failAttempt(sessions, "y", 0)[0]; sum.Restart == nil || sum.Restart.Delay <= 0 {
			t.Fatalf("%+v", sum)
		}
		next := []*Session{j.next(0, sessions[0]), j.next(1, sessions[1])}
		if err := next[1].End(j.ctx, 2, true); err != nil {
			t.Fatal(err)
		}
		next = append(next, j.next(2, sessions[2]))
		for i, s := range next {
			if _, err := s.World(j.ctx); !errors.As(err, new(*Verdict)) {
				t.Errorf("agent %d: %v", i, err)
			}
		}
		each(next, func(i int, s *Session) {
			j.settle(s)
			if sum := j.leave(s); sum.Verdict.Kind != Ended || sum.Code != 130 || !sum.Settled {
				t.Errorf("agent %d: %+v", i, sum)
			}
		})
		j.wantLed()
	})
}

// An agent that is lost between two attempts, or before all have settled, ends the job.
func TestAgentIsLostBetweenAttempts(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		t.Run("after the decision", func(t *testing.T) {
			j := start(t, LeaderConfig{Tasks: 3, Rules: Rules{Restarts: restart.Policy{Max: 1}}})
			sessions := j.agents(3)
			j.worlds(sessions)
			j.failAttempt(sessions, "x", 0)
			j.lose(sessions[2])
			for i := range 2 {
				s := j.next(i, sessions[i])
				v, _ := j.ended(s).(*Verdict)
				if v == nil || v.Kind != Lost || v.By != "agent-2" || v.PID != 1002 || v.Host != "node2" {
					t.Errorf("agent %d: %v", i, v)
				}
			}
		})
		t.Run("before the decision", func(t *testing.T) {
			j := start(t, LeaderConfig{Tasks: 2, Rules: Rules{Restarts: restart.Policy{Max: 1}}})
			sessions := j.agents(2)
			j.worlds(sessions)
			if err := sessions[0].Fail(j.ctx, Worker{Code: 1}); err != nil {
				t.Fatal(err)
			}
			j.lose(sessions[1])
			sum := j.finish(sessions[:1], func(int) Worker { return Worker{Code: 1} })[0]
			if sum.Restart != nil || sum.NoRestart != restart.Lost || sum.Verdict.Kind != Failed {
				t.Errorf("%+v", sum)
			}
		})
	})
}

// The store is lost between two attempts.
func TestStoreIsLostBetweenAttempts(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2, Rules: Rules{Restarts: restart.Policy{Max: 1}}})
	sessions := j.agents(2)
	j.worlds(sessions)
	j.failAttempt(sessions, "x", 0)
	host := j.next(0, sessions[0])
	j.close()
	other := j.next(1, sessions[1])
	for i, s := range []*Session{host, other} {
		if err := j.ended(s); !errors.Is(err, ErrStoreLost) {
			t.Errorf("agent %d: %v", i, err)
		}
		if _, err := s.Leave(j.ctx); !errors.Is(err, ErrStoreLost) {
			t.Errorf("agent %d left: %v", i, err)
		}
	}
	// The store answers that it has stopped, as one would that returns.
	if _, _, _, err := kv.ReadAndWatch(j.ctx, j.admin, "/"); !errors.Is(err, ErrStoreLost) {
		t.Errorf("a store that is closed: %v", err)
	}
}
