package rdzv

import (
	"context"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/presence"
)

// waitsForMore is a job of 2 to 3 agents whose lost agents can be replaced.
func waitsForMore() LeaderConfig {
	c := elastic(3)
	c.Replaceable = true
	return c
}

// arrives joins agent i in the background.
func (v *variable) arrives(i int) <-chan arrival { return v.arrivesLate(v.agent(i)) }

// arrived waits until the agent has joined.
func (v *variable) arrived(i int, arrived <-chan arrival) {
	v.t.Helper()
	a := <-arrived
	if a.err != nil {
		v.t.Fatalf("agent %d: %v", i, a.err)
	}
	v.sessions[i] = a.session
}

// leaves makes an agent leave the job with SIGTERM.
func (v *variable) leaves(i int) {
	v.t.Helper()
	if err := v.sessions[i].Withdraw(v.ctx, false); err != nil {
		v.t.Fatal(err)
	}
	for n, s := range v.sessions {
		if verdict, _ := v.ended(s).(*Verdict); verdict == nil || !verdict.Withdrawn {
			v.t.Fatalf("agent %d was told %v", n, verdict)
		}
		if !s.isSpare() {
			v.settle(s, stopped(n))
		}
	}
	if sum := v.leave(v.sessions[i]); !sum.Withdrawn {
		v.t.Errorf("%+v", sum)
	}
	delete(v.sessions, i)
}

// noWarning fails the test if the leaders have warned of something.
func (v *variable) noWarning() {
	v.t.Helper()
	if len(v.warnings) > 0 {
		v.t.Errorf("warning %q", <-v.warnings)
	}
}

// The leader, whose node runs rank 0, is lost while the agents gather. The next one starts the last
// call again.
func TestLeaderOfAnElasticJobIsLostWhileAgentsGather(t *testing.T) {
	t.Parallel()
	const lost = "lost an agent (pid 1000 on node0): it disconnected unexpectedly; the job goes on"
	t.Run("and all join", func(t *testing.T) {
		t.Parallel()
		c := elastic(3)
		c.LastCall = time.Hour
		v := vary(t, startLeased, c)
		v.join(0, 1)
		stale := v.sessions[1].keys.Seats().Of("agent-9") // for a world that was not agreed
		if err := v.sessions[1].life.store.Put(v.ctx, stale, record.Encode(record.SeatValue{Seat: oneRank(5)}),
			v.sessions[1].registration.Run.JobLease); err != nil {
			t.Fatal(err)
		}
		v.lose(0)
		v.warned(lost)
		v.join(2, 3)
		v.world(3, map[int]int{1: 0, 2: 1, 3: 2})
		v.await(stale, false)
		v.end()
	})
	t.Run("and the last call ends", func(t *testing.T) {
		t.Parallel()
		c := elastic(3)
		c.LastCall = 50 * time.Millisecond
		v := vary(t, startLeased, c)
		v.join(0)
		v.lose(0)
		v.join(1, 2)
		v.world(2, map[int]int{1: 0, 2: 1})
		v.end()
	})
	t.Run("and too few tasks are left", func(t *testing.T) {
		t.Parallel()
		v := vary(t, startLeased, LeaderConfig{Tasks: 3, MinTasks: 3, Rules: Rules{LastCall: time.Hour}})
		for i := range 2 {
			a := v.agent(i)
			a.Self.Tasks = ranked(i, Unknown)
			v.sessions[i] = v.enter(a)
		}
		v.lose(0)
		verdict, _ := v.ended(v.sessions[1]).(*Verdict)
		if verdict == nil || !strings.Contains(verdict.Text, "and the job needs 3") {
			t.Errorf("%v", verdict)
		}
		v.settle(v.sessions[1])
		v.leave(v.sessions[1])
		v.wantNothingLeft()
	})
	t.Run("and another task with it", func(t *testing.T) { // of which nobody has written that it is lost
		t.Parallel()
		v := vary(t, startLeased, LeaderConfig{Tasks: 4, MinTasks: 3, Rules: Rules{LastCall: time.Hour}})
		for i := range 3 {
			a := v.agent(i)
			a.Self.Tasks = ranked(i, Unknown)
			v.sessions[i] = v.enter(a)
		}
		v.kill(v.sessions[0].config.Self.ID)
		v.kill(v.sessions[1].config.Self.ID)
		verdict, _ := v.ended(v.sessions[2]).(*Verdict)
		if want := "; 1 task is left, and the job needs 3"; verdict == nil || !strings.HasSuffix(verdict.Text, want) {
			t.Errorf("%v, want %q", verdict, want)
		}
		v.settle(v.sessions[2])
		v.leave(v.sessions[2])
	})
}

// The leader is lost while a late agent waits. Whenever that happens, the next attempt consists of
// those that are left, in their order, and of the late one.
func TestLeaderOfAnElasticJobIsLost(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) *variable {
		t.Parallel()
		v := vary(t, startLeased, elastic(4))
		v.join(0, 1)
		v.world(2, map[int]int{0: 0, 1: 1})
		v.join(2)
		v.world(2, map[int]int{0: 0, 1: 1, 2: -1})
		return v
	}
	ends := func(v *variable) {
		v.world(2, map[int]int{1: 0, 2: 1})
		v.join(3)
		v.world(2, map[int]int{1: 0, 2: 1, 3: -1})
		v.fail(2)
		v.restart(3, 1)
		v.world(2, map[int]int{1: 0, 3: 1})
		v.end()
	}
	failAttempt := func(v *variable) {
		if err := v.sessions[1].Fail(v.ctx, Worker{Rank: 1, Code: 7}); err != nil {
			v.t.Fatal(err)
		}
		for _, s := range v.sessions {
			v.ended(s)
		}
		v.settle(v.sessions[1], Worker{Rank: 1, Code: 7})
	}
	t.Run("when workers run", func(t *testing.T) {
		v := start(t)
		v.fail(0)
		v.restart(2, 1)
		v.noWarning()
		ends(v)
	})
	t.Run("before it has decided", func(t *testing.T) {
		v := start(t)
		failAttempt(v)
		v.lose(0)
		v.restart(1, 2)
		ends(v)
	})
	for name, before := range map[string][]int{
		"when it has decided": nil, "when one has joined": {1}, "when the late one has joined": {2},
		"when all others have joined": {2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			v := start(t)
			failAttempt(v)
			v.settle(v.sessions[0], stopped(0))
			if sum := v.leave(v.sessions[0]); sum.Restart == nil {
				t.Fatalf("%+v", sum)
			}
			v.restart(before...)
			v.lose(0)
			for _, i := range []int{1, 2} {
				if v.sessions[i].config.Attempt == 0 {
					v.restart(i)
				}
			}
			v.warned("lost the agent of rank 0 (pid 1000 on node0): it disconnected unexpectedly; the job goes")
			ends(v)
		})
	}
	t.Run("when it has left", func(t *testing.T) {
		v := start(t)
		v.leaves(0)
		v.restart(2, 1)
		v.world(2, map[int]int{1: 0, 2: 1})
		v.noWarning()
		ends(v)
	})
	t.Run("with the late one", func(t *testing.T) {
		v := start(t)
		v.join(3)
		v.world(2, map[int]int{0: 0, 1: 1, 2: -1, 3: -1})
		v.kill("agent-0")
		v.lose(2)
		v.fail(0)
		v.warned("lost the agent on node2 (pid 1002), which waited for the next attempt")
		v.restart(3, 1)
		v.world(2, map[int]int{1: 0, 3: 1})
		v.end()
	})
	t.Run("after another agent", func(t *testing.T) {
		v := start(t)
		v.join(3)
		v.world(2, map[int]int{0: 0, 1: 1, 2: -1, 3: -1})
		v.fail(1)
		if sum := v.leave(v.sessions[0]); sum.Restart == nil {
			t.Fatalf("%+v", sum)
		}
		v.lose(0)
		v.restart(3, 2)
		v.world(2, map[int]int{2: 0, 3: 1})
		v.warned("lost the agent of rank 0 (pid 1000 on node0)")
		v.noWarning() // of the loss that has ended the attempt
		v.end()
	})
}

// An agent that was refused is no member, also if the leader reads again what is in the store.
func TestRefusedAgentIsNoMember(t *testing.T) {
	t.Parallel()
	v := vary(t, startLeased, elastic(3))
	v.join(0, 1)
	v.world(2, map[int]int{0: 0, 1: 1})
	v.kill("agent-0")
	s := v.sessions[1]
	full, lease := record.Encode(record.SeatValue{Full: true}), s.registration.Run.JobLease
	if err := s.life.store.Put(v.ctx, s.keys.Seats().Of("agent-9"), full, lease); err != nil {
		t.Fatal(err)
	}
	v.compact()
	v.revive("agent-0")
	v.join(2)
	v.world(2, map[int]int{0: 0, 1: 1, 2: -1})
	v.noWarning()
	v.end()
}

// The leader has not answered the late agent when it is lost, and the store compacts what the late
// one is to learn.
func TestNewLeaderReceivesLateAgents(t *testing.T) {
	t.Parallel()
	v := vary(t, startLeased, elastic(3))
	v.join(0, 1)
	v.world(2, map[int]int{0: 0, 1: 1})
	s := v.sessions[1]
	v.kill("agent-0")
	c := v.agent(2)
	client := v.client(c.Self.ID)
	watched := make(chan string, 10)
	client.Watcher = observedWatcher{client.Watcher, watched}
	v.sessions[2] = v.joinWith(client, c)
	seated := make(chan error, 1)
	go func() {
		_, err := v.sessions[2].World(v.ctx)
		seated <- err
	}()
	for key := range watched {
		if key == s.keys.Seats().Of("agent-2") {
			break
		}
	}
	v.kill("agent-2")
	v.job.lose(v.sessions[0])
	delete(v.sessions, 0)
	v.await(s.keys.Seats().Of("agent-2"), true)
	v.compact()
	v.revive("agent-2")
	if err := <-seated; err != nil {
		t.Fatal(err)
	}
	if verdict := v.wasLost(); verdict.By != "agent-0" {
		t.Errorf("%v", verdict)
	}
	v.restart(1, 2)
	v.world(2, map[int]int{1: 0, 2: 1})
	v.noWarning()
	v.end()
}

// observedWatcher tells which watches the store has confirmed.
type observedWatcher struct {
	clientv3.Watcher
	confirmed chan<- string
}

func (w observedWatcher) Watch(
	ctx context.Context, key string, opts ...clientv3.OpOption,
) clientv3.WatchChan {
	events := make(chan clientv3.WatchResponse)
	go func() {
		defer close(events)
		for response := range w.Watcher.Watch(ctx, key, opts...) {
			select {
			case events <- response:
			case <-ctx.Done():
			}
			if response.Created {
				w.confirmed <- key
			}
		}
	}()
	return events
}

// All agents with workers are lost, among them the leader: the late one waits for others.
func TestLateAgentIsLeft(t *testing.T) {
	t.Parallel()
	v := vary(t, startLeased, waitsForMore())
	v.join(0, 1)
	v.world(2, map[int]int{0: 0, 1: 1})
	v.join(2)
	v.world(2, map[int]int{0: 0, 1: 1, 2: -1})
	v.lose(1)
	v.fail(0)
	if next := v.restart(2); next.Missing != 1 {
		t.Errorf("%+v", next)
	}
	v.join(3)
	v.world(2, map[int]int{2: 0, 3: 1})
	if !v.sessions[2].Leads() {
		t.Error("the agent that was left does not lead")
	}
	v.end()
}

// An agent that has lost its runner is alive. If then the leader is lost, the next attempt consists
// of all others, without those that are lost too.
func TestElasticJobKeepsAnAgentThatReportedALoss(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		agents, reports int
		lost            []int // with the leader, which is agent 0
		ranks           map[int]int
	}{
		"3 agents":            {3, 2, nil, map[int]int{1: 0, 2: 1}},
		"4 agents":            {4, 2, nil, map[int]int{1: 0, 2: 1, 3: 2}},
		"which is lost later": {4, 2, []int{2}, map[int]int{1: 0, 3: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := elastic(test.agents)
			c.LastCall = time.Hour
			v := vary(t, startLeased, c)
			first := map[int]int{}
			for i := range test.agents {
				v.join(i)
				first[i] = i
			}
			v.world(test.agents, first)
			if err := v.sessions[test.reports].ReportLoss(v.ctx, "lost the runner", false); err != nil {
				t.Fatal(err)
			}
			v.wasLost()
			for i := range test.agents {
				if sum := v.leave(v.sessions[i]); sum.Restart == nil {
					t.Fatalf("agent %d: %+v", i, sum)
				}
			}
			for _, i := range append(test.lost, 0) {
				v.lose(i)
			}
			for i := range v.sessions {
				v.restart(i)
			}
			v.world(len(test.ranks), test.ranks)
			v.end()
		})
	}
}

// With the leader too many agents are lost.
func TestLeaderIsLostAndTooFewAreLeft(t *testing.T) {
	t.Parallel()
	const want = "lost the agent of rank 0 (pid 1000 on node0): it disconnected unexpectedly; " +
		"1 agent is left, and the job needs 2"
	v := vary(t, startLeased, elastic(3))
	v.join(0, 1)
	v.world(2, map[int]int{0: 0, 1: 1})
	if verdict := v.fail(0); verdict.Error() != want {
		t.Errorf("verdict %q, want %q", verdict, want)
	}
	if sum := v.leave(v.sessions[1]); sum.Restart != nil {
		t.Errorf("%+v", sum)
	}
	v.wantNothingLeft()
}

// All agents were lost: the job that is started again is another run, without their workers.
func TestElasticJobStartedAgain(t *testing.T) {
	t.Parallel()
	v := vary(t, startLeased, waitsForMore())
	v.join(0, 1)
	v.world(2, map[int]int{0: 0, 1: 1})
	for i := range 2 {
		v.kill(v.sessions[i].config.Self.ID)
	}
	for i := range 2 {
		v.lose(i)
	}
	began := time.Now()
	v.join(2, 3)
	v.world(2, map[int]int{2: 0, 3: 1})
	if took := time.Since(began); took > presence.MinTimeout || v.sessions[2].config.Attempt != 0 {
		t.Errorf("attempt %d after %v", v.sessions[2].config.Attempt, took)
	}
	v.succeed() // the keys of the old run exist until its lease expires
}

// The job has all its agents until the lease of one that was killed expires.
func TestLateAgentInPlaceOfAKilledOne(t *testing.T) {
	t.Parallel()
	t.Run("which has workers", func(t *testing.T) {
		t.Parallel()
		c := elastic(3)
		c.LastCall = time.Hour
		v := vary(t, startLeased, c)
		v.join(0, 1, 2)
		v.world(3, map[int]int{0: 0, 1: 1, 2: 2})
		v.kill("agent-2")
		delete(v.sessions, 2)
		arrives := v.arrives(3)
		v.wasLost()
		v.restart(0)
		v.arrived(3, arrives)
		v.restart(1)
		v.world(3, map[int]int{0: 0, 1: 1, 3: 2})
		v.end()
	})
	t.Run("which waits", func(t *testing.T) {
		t.Parallel()
		v := vary(t, startLeased, elastic(3))
		v.join(0, 1)
		v.world(2, map[int]int{0: 0, 1: 1})
		v.join(2)
		v.world(2, map[int]int{0: 0, 1: 1, 2: -1})
		v.kill("agent-2")
		delete(v.sessions, 2)
		began := time.Now()
		v.arrived(3, v.arrives(3))
		if took := time.Since(began); took > 2*presence.MinTimeout+2*time.Second {
			t.Errorf("joined after %v", took)
		}
		v.world(2, map[int]int{0: 0, 1: 1, 3: -1})
		v.end()
	})
}
