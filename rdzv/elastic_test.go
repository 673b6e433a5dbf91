package rdzv

import (
	"maps"
	"strings"
	"testing"
	"time"

	"rdzv/rdzv/restart"
)

// elastic is a job of 2 to so many agents that starts at once when 2 have joined.
func elastic(agents int) LeaderConfig {
	return LeaderConfig{Tasks: agents, MinTasks: 2, Rules: Rules{Restarts: restart.Policy{Max: 9}}}
}

// variable is a job with a variable number of agents.
type variable struct {
	*job
	sessions map[int]*Session // by number of the agent
	warnings chan error
}

// vary starts a job with a variable number of agents.
func vary(t *testing.T, start starter, c LeaderConfig) *variable {
	t.Helper()
	v := &variable{sessions: map[int]*Session{}, warnings: make(chan error, 10)}
	c.Notify = into(v.warnings)
	v.job = start(t, c)
	return v
}

// agent is the configuration of agent i, on a node of its own.
func (v *variable) agent(i int) Config { return v.job.agent(hosted(i)) }

// join joins agents.
func (v *variable) join(agents ...int) {
	v.t.Helper()
	for _, i := range agents {
		v.sessions[i] = v.enter(v.agent(i))
	}
}

// again is an agent on the node of agent i.
func (v *variable) again(i int, id string) Config {
	c := v.agent(i)
	c.Self.ID = id
	return c
}

// wantFull fails the test if agent i, which is one too many, is not refused.
func (v *variable) wantFull(i int) {
	v.t.Helper()
	c := v.agent(i)
	s, err := Join(v.ctx, v.client(c.Self.ID), c)
	if err == nil {
		_, err = s.World(v.ctx)
		_, _ = s.Leave(v.ctx)
	}
	if err != ErrFull {
		v.t.Errorf("one agent too many: %v", err)
	}
}

// world checks which agents have which ranks in the world that all have; -1 is a spare.
func (v *variable) world(size int, ranks map[int]int) {
	v.t.Helper()
	got := map[int]int{}
	for i, s := range v.sessions {
		w, err := s.World(v.ctx)
		if err != nil {
			v.t.Fatalf("agent %d: %v", i, err)
		}
		if w.Size != size || w.Agents != size || w.Nodes != size {
			v.t.Errorf("agent %d: %d ranks of %d agents on %d nodes, want %d", i, w.Size, w.Agents,
				w.Nodes, size)
		}
		if got[i] = w.Seat.First(); w.Seat.Node != w.Seat.First() || w.Seat.Spare != (w.Seat.First() < 0) {
			v.t.Errorf("agent %d: %+v", i, w.Seat)
		}
	}
	if !maps.Equal(got, ranks) {
		v.t.Errorf("ranks by agent: %v, want %v", got, ranks)
	}
}

// lose kills an agent.
func (v *variable) lose(i int) {
	v.t.Helper()
	v.job.lose(v.sessions[i])
	delete(v.sessions, i)
}

// fail loses an agent that runs workers, waits for the verdict and settles the others.
func (v *variable) fail(i int) *Verdict {
	v.t.Helper()
	v.lose(i)
	return v.wasLost()
}

// wasLost is what fail does after the loss.
func (v *variable) wasLost() (verdict *Verdict) {
	v.t.Helper()
	for n, s := range v.sessions {
		if verdict, _ = v.ended(s).(*Verdict); verdict == nil || verdict.Kind != Lost {
			v.t.Fatalf("agent %d was told %v", n, verdict)
		}
		if !s.isSpare() {
			v.settle(s, stopped(n))
		}
	}
	return verdict
}

func (s *Session) isSpare() bool { return s.seat.Load() != nil && s.seat.Load().Spare }

// restart returns what follows, and makes these agents join the next attempt.
func (v *variable) restart(agents ...int) (next Restart) {
	v.t.Helper()
	for _, i := range agents {
		sum := v.leave(v.sessions[i])
		if sum.Restart == nil {
			v.t.Fatalf("agent %d: no restart: %+v", i, sum)
		}
		next, v.sessions[i] = *sum.Restart, v.nextAs(v.sessions[i], v.agent(i).Self)
	}
	return next
}

// end ends the job with success, and checks that nothing of it is left.
func (v *variable) end() {
	v.t.Helper()
	v.succeed()
	v.wantNothingLeft()
}

func (v *variable) succeed() {
	v.t.Helper()
	for i, s := range v.sessions {
		if !s.isSpare() {
			v.settle(s, succeeded(i))
		}
	}
	for i, s := range v.sessions {
		if sum := v.leave(s); sum.Verdict == nil || sum.Verdict.Kind != Done {
			v.t.Errorf("agent %d: %+v", i, sum)
		}
	}
}

func (v *variable) warned(text string) {
	v.t.Helper()
	select {
	case err := <-v.warnings:
		if !strings.Contains(err.Error(), text) {
			v.t.Errorf("warning %q, want %q", err, text)
		}
	case <-v.ctx.Done():
		v.t.Fatalf("no warning %q", text)
	}
}

func TestElasticJobStartsWithAllAgentsOrAfterTheLastCall(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		for name, test := range map[string]struct {
			lastCall time.Duration
			joinBy   time.Duration // 0: no limit
			agents   int
		}{
			"all":          {time.Hour, 0, 4},
			"last call":    {50 * time.Millisecond, 0, 2},
			"join timeout": {time.Hour, time.Second, 2},
		} {
			t.Run(name, func(t *testing.T) {
				c := elastic(4)
				c.LastCall = test.lastCall
				v := vary(t, start, c)
				ranks := map[int]int{}
				for i := range test.agents {
					ranks[i] = i
					c := v.agent(i)
					if test.joinBy > 0 {
						c.JoinBy = time.Now().Add(test.joinBy)
					}
					v.sessions[i] = v.enter(c)
				}
				v.world(test.agents, ranks)
				v.end()
			})
		}
	})
}

// Agents that join later wait for the next attempt. The others keep their order, and new ones come
// last.
func TestElasticJobGrowsAndShrinks(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		v := vary(t, start, elastic(4))
		v.join(0, 2)
		v.world(2, map[int]int{0: 0, 2: 1})
		v.join(3, 1)
		v.world(2, map[int]int{0: 0, 2: 1, 3: -1, 1: -1})
		v.wantFull(9)
		v.fail(2)
		v.restart(1, 0, 3)
		v.world(3, map[int]int{0: 0, 3: 1, 1: 2})
		v.join(5)
		v.world(3, map[int]int{0: 0, 3: 1, 1: 2, 5: -1})
		v.fail(3)
		v.restart(0, 5, 1)
		v.world(3, map[int]int{0: 0, 1: 1, 5: 2})
		v.end()
	})
}

// Of two agents that join late one has a place. When it is lost another one may have it, also on the
// same node.
func TestLateAgentsOfAnElasticJob(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		v := vary(t, start, elastic(3))
		v.join(0, 1)
		v.world(2, map[int]int{0: 0, 1: 1})
		v.join(2)
		v.wantFull(3)
		v.world(2, map[int]int{0: 0, 1: 1, 2: -1})
		v.lose(2)
		v.warned("lost the agent on node2 (pid 1002), which waited for the next attempt: it disconnected")
		v.sessions[4] = v.enter(v.again(2, "agent-4"))
		v.world(2, map[int]int{0: 0, 1: 1, 4: -1})
		other := v.again(2, "agent-5")
		if _, err := Join(v.ctx, v.client("agent-5"), other); !noPlace(err) || err == ErrFull {
			t.Errorf("another agent on the host of one that waits: %v", err)
		}
		v.end()
	})
}

// A late agent that is lost while the others settle is not part of the next attempt.
func TestLateAgentIsLostBetweenAttempts(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		v := vary(t, start, elastic(4))
		v.join(0, 1)
		v.world(2, map[int]int{0: 0, 1: 1})
		v.join(2, 3)
		v.lose(1)
		v.ended(v.sessions[0])
		v.lose(3)
		v.settle(v.sessions[0], stopped(0))
		v.restart(2, 0)
		v.world(2, map[int]int{0: 0, 2: 1})
		v.end()
	})
}

// An agent that is lost before the world is agreed does not end the job if enough are left, or if
// others may join.
func TestElasticJobLosesAgentsWhileTheyGather(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		c := elastic(4)
		c.LastCall = time.Hour
		v := vary(t, start, c)
		v.join(0, 1)
		v.lose(1)
		v.warned("lost an agent (pid 1001 on node1): it disconnected unexpectedly; the job goes on without it")
		v.join(2, 3)
		v.sessions[4] = v.enter(v.again(1, "agent-4"))
		v.world(4, map[int]int{0: 0, 4: 1, 2: 2, 3: 3})
		v.end()
	})
}

func TestElasticJobLosesAgentsBetweenAttempts(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		v := vary(t, start, elastic(4))
		v.join(0, 1)
		v.world(2, map[int]int{0: 0, 1: 1})
		v.join(2, 3)
		v.world(2, map[int]int{0: 0, 1: 1, 2: -1, 3: -1})
		v.fail(1)
		v.restart(2)
		v.lose(3)
		v.restart(0)
		v.world(2, map[int]int{0: 0, 2: 1})
		v.warned("lost an agent (pid 1003 on node3)")
		v.end()
	})
}

// With fewer agents than it needs the job ends, or waits for others if they can find the store.
func TestElasticJobWithTooFewAgents(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		const tooFew = "lost the agent of rank 1 (pid 1001 on node1): it disconnected unexpectedly; " +
			"1 agent is left, and the job needs 2"
		t.Run("ends", func(t *testing.T) {
			v := vary(t, start, elastic(3))
			v.join(0, 1)
			v.world(2, map[int]int{0: 0, 1: 1})
			if verdict := v.fail(1); verdict.Error() != tooFew {
				t.Errorf("verdict %q, want %q", verdict, tooFew)
			}
			if sum := v.leave(v.sessions[0]); sum.Restart != nil || sum.NoRestart != restart.Lost {
				t.Errorf("%+v", sum)
			}
		})
		t.Run("waits", func(t *testing.T) {
			c := elastic(3)
			c.Replaceable = true
			v := vary(t, start, c)
			v.join(0, 1)
			v.world(2, map[int]int{0: 0, 1: 1})
			v.fail(1)
			if next := v.restart(0); next.Missing != 1 || next.Vacant != nil {
				t.Errorf("%+v", next)
			}
			v.join(2)
			v.world(2, map[int]int{0: 0, 2: 1})
			v.end()
		})
		t.Run("waits between attempts", func(t *testing.T) {
			c := elastic(3)
			c.Replaceable = true
			v := vary(t, start, c)
			v.join(0, 1)
			v.world(2, map[int]int{0: 0, 1: 1})
			v.join(2)
			v.world(2, map[int]int{0: 0, 1: 1, 2: -1})
			v.fail(1)
			v.restart(0)
			v.lose(2)
			v.warned("lost an agent (pid 1002 on node2): it disconnected unexpectedly; " +
				"waiting for 1 more agent")
			v.join(3)
			v.world(2, map[int]int{0: 0, 3: 1})
			v.end()
		})
		t.Run("ends between attempts", func(t *testing.T) {
			v := vary(t, start, elastic(3))
			v.join(0, 1)
			v.world(2, map[int]int{0: 0, 1: 1})
			v.join(2)
			v.world(2, map[int]int{0: 0, 1: 1, 2: -1})
			v.fail(1)
			v.restart(0)
			v.lose(2)
			verdict, _ := v.ended(v.sessions[0]).(*Verdict)
			if verdict == nil || !strings.HasSuffix(verdict.Text, "1 agent is left, and the job needs 2") {
				t.Errorf("%v", verdict)
			}
			v.settle(v.sessions[0])
			v.leave(v.sessions[0])
		})
	})
}

// Tasks of a launcher that are lost do not come back.
func TestElasticJobOfALauncherLosesTasksWhileTheyGather(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		c := elastic(3)
		c.LastCall = time.Hour
		v := vary(t, start, c)
		task := func(i int) *Session {
			c := v.agent(i)
			c.Self.Tasks = ranked(i, Unknown)
			v.sessions[i] = v.enter(c)
			return v.sessions[i]
		}
		host := task(0)
		task(1)
		v.lose(1)
		v.warned("lost the agent of rank 1 (pid 1001 on node1)")
		task(2)
		v.lose(2)
		verdict, _ := v.ended(host).(*Verdict)
		if want := "; 1 task is left, and the job needs 2"; verdict == nil ||
			!strings.HasSuffix(verdict.Text, want) {
			t.Errorf("%v, want %q", verdict, want)
		}
		v.settle(host)
		v.leave(host)
	})
}
