package rdzv

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"rdzv/rdzv/presence"
)

// shortly bounds what happens within milliseconds, and would take the peer
// timeout of 10 s or the settle timeout of 15 s if the mechanism did not work.
const shortly = 5 * time.Second

// soon fails the test when do takes longer than shortly.
func soon(t *testing.T, what string, do func()) {
	t.Helper()
	began := time.Now()
	do()
	if took := time.Since(began); took > shortly {
		t.Errorf("%s took %v", what, took)
	}
}

func wantLost(t *testing.T, cause error, who string) {
	t.Helper()
	text := "lost " + who + ": it went without a word"
	if v, ok := cause.(*Verdict); !ok || v.Kind != Lost || v.Text != text {
		t.Errorf("the job ended with %#v, want a loss: %s", cause, text)
	}
}

func TestAnAgentDiesBeforeItSaysWhatItIs(t *testing.T) {
	j := start(t, LeaderConfig{Agents: 2})
	s := j.agents(1)[0]
	a, err := presence.Attend(j.ctx, j.client("agent-1").ActiveConnection(), "agent-1")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Abandon()
	soon(t, "the news", func() {
		j.kill("agent-1")
		wantLost(t, j.ended(s), "an agent that had just come in")
	})
	soon(t, "leaving", func() { j.settle(s); j.leave(s) })
}

func TestAnAgentDiesWhileOthersAreMissing(t *testing.T) {
	j := start(t, LeaderConfig{Agents: 3})
	sessions := j.agents(2)
	soon(t, "the news", func() {
		j.kill("agent-1")
		wantLost(t, j.ended(sessions[0]), "an agent (process 1001 on node1)")
	})
	if cause := j.ended(sessions[1]); cause != ErrStoreLost {
		t.Errorf("the dead agent's own job ended with %v", cause)
	}
	soon(t, "leaving", func() { j.settle(sessions[0]); j.leave(sessions[0]) })
}

func TestAnAgentDiesAtWork(t *testing.T) {
	j := start(t, LeaderConfig{Agents: 4})
	sessions := j.agents(4)
	j.worlds(sessions)
	soon(t, "the news", func() {
		j.kill("agent-2")
		for _, i := range []int{0, 1, 3} {
			wantLost(t, j.ended(sessions[i]), "the agent of rank 2 (process 1002 on node2)")
		}
	})
	rest := []*Session{sessions[0], sessions[1], sessions[3]}
	soon(t, "leaving", func() {
		sums := j.finish(rest, func(i int) Worker { return []Worker{stopped(0), {Rank: 1, Code: 3}, stopped(3)}[i] })
		if f := sums[0].Failures; len(f) != 1 || f[0].Rank != 1 || !sums[0].Settled {
			t.Errorf("the store's host reports %+v", sums[0])
		}
	})
}

// Who has settled is waited for by nobody.
func TestAnAgentThatSettledIsNotLost(t *testing.T) {
	j := start(t, LeaderConfig{Agents: 3})
	sessions := j.agents(3)
	j.worlds(sessions)
	j.settle(sessions[2], succeeded(2))
	j.kill("agent-2")
	j.ended(sessions[2])
	for i, sum := range j.finish(sessions[:2], succeeded) {
		if sum.Verdict.Kind != Done || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum.Verdict)
		}
	}
}

func TestAnAgentDiesAfterTheVerdict(t *testing.T) {
	j := start(t, LeaderConfig{Agents: 3})
	sessions := j.agents(3)
	j.worlds(sessions)
	if err := sessions[0].Fail(j.ctx, Worker{Rank: 0, Code: 3}); err != nil {
		t.Fatal(err)
	}
	j.ended(sessions[2])
	j.kill("agent-2")
	soon(t, "leaving", func() {
		for i, sum := range j.finish(sessions[:2], stopped) {
			if sum.Verdict.Kind != Failed || !sum.Settled {
				t.Errorf("agent %d: %+v", i, sum)
			}
		}
	})
}

func TestAnAgentThatLeavesWithoutAWordIsLost(t *testing.T) {
	j := start(t, LeaderConfig{Agents: 2})
	sessions := j.agents(2)
	j.worlds(sessions)
	at, cancel := context.WithCancelCause(j.ctx)
	why := errors.New("enough")
	cancel(why)
	if _, err := sessions[1].Leave(at); err != why {
		t.Errorf("Leave: %v", err)
	}
	soon(t, "the news", func() {
		wantLost(t, j.ended(sessions[0]), "the agent of rank 1 (process 1001 on node1)")
	})
}

func TestAnAgentThatGivesUp(t *testing.T) {
	for name, test := range map[string]struct {
		agents int
		want   string
	}{
		"before the world": {3, "an agent (process 1001 on node1) gave up: it ran 0 of its 1 workers"},
		"after the world":  {2, "the agent of rank 1 (process 1001 on node1) gave up: it ran 0 of its 1 workers"},
	} {
		t.Run(name, func(t *testing.T) {
			j := start(t, LeaderConfig{Agents: test.agents})
			sessions := j.agents(2)
			if test.agents == 2 {
				j.worlds(sessions)
			}
			j.settle(sessions[1])
			if v, ok := j.ended(sessions[0]).(*Verdict); !ok || v.Kind != Unready || v.Text != test.want {
				t.Errorf("%v, want %q", v, test.want)
			}
			j.settle(sessions[0])
			each(sessions, func(_ int, s *Session) { j.leave(s) })
		})
	}
}

func TestAnAgentThatNeverSettlesIsNamed(t *testing.T) {
	j := start(t, LeaderConfig{Agents: 3, SettleTimeout: 100 * time.Millisecond})
	sessions := j.agents(3)
	j.worlds(sessions)
	if err := sessions[0].End(j.ctx, 15); err != nil {
		t.Fatal(err)
	}
	for i, sum := range j.finish(sessions[:2], stopped) {
		if sum.Settled || sum.Unsettled != "the agent of rank 2 (process 1002 on node2)" {
			t.Errorf("agent %d: unsettled %q", i, sum.Unsettled)
		}
	}
	if err := <-j.led; err != nil {
		t.Errorf("the leader: %v", err)
	}
}

// A leader that is busy or broken holds nobody for ever.
func TestLeavingIsBounded(t *testing.T) {
	t.Parallel()
	j := start(t, LeaderConfig{Agents: 2, SettleTimeout: patience})
	a := j.join(member(0))
	b, err := Join(j.ctx, j.client("agent-1"), Config{Job: "test", Self: member(1), SettleTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	j.worlds([]*Session{a, b})
	if err := a.End(j.ctx, 15); err != nil {
		t.Fatal(err)
	}
	j.settle(b, stopped(1))
	if sum, err := b.Leave(j.ctx); err == nil || sum.Verdict == nil || !strings.Contains(err.Error(), "2.1s") {
		t.Errorf("left with %+v, %v", sum, err)
	}
}

func TestTheStoreGoes(t *testing.T) {
	for name, until := range map[string]func(*job, []*Session){
		"before the world": func(*job, []*Session) {},
		"at work":          func(j *job, s []*Session) { j.worlds(s) },
		"after some have settled": func(j *job, s []*Session) {
			j.worlds(s)
			j.settle(s[0], succeeded(0))
			j.settle(s[1], succeeded(1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			agents := 4
			if name == "before the world" {
				agents = 5
			}
			j := start(t, LeaderConfig{Agents: agents})
			sessions := j.agents(4)
			until(j, sessions)
			soon(t, "the news", func() {
				j.close()
				for i, s := range sessions {
					if cause := j.ended(s); cause != ErrStoreLost {
						t.Errorf("agent %d: %v", i, cause)
					}
				}
			})
			soon(t, "leaving", func() {
				each(sessions, func(i int, s *Session) {
					if err := s.Settle(j.ctx, nil); i != 0 && !errors.Is(err, ErrStoreLost) {
						t.Errorf("agent %d settles: %v", i, err)
					}
					if sum, err := s.Leave(j.ctx); !errors.Is(err, ErrStoreLost) || sum.Verdict != nil {
						t.Errorf("agent %d leaves with %+v, %v", i, sum, err)
					}
				})
			})
			if err := <-j.led; err == nil {
				t.Error("the leader has led to the end")
			}
		})
	}
}

func TestTheStoreGoesAfterTheVerdict(t *testing.T) {
	j := start(t, LeaderConfig{Agents: 3})
	sessions := j.agents(3)
	j.worlds(sessions)
	if err := sessions[1].Fail(j.ctx, Worker{Rank: 1, Code: 3}); err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		j.ended(s)
	}
	j.close()
	soon(t, "leaving", func() {
		each(sessions, func(i int, s *Session) {
			if sum, err := s.Leave(j.ctx); !errors.Is(err, ErrStoreLost) || sum.Verdict.Code != 3 {
				t.Errorf("agent %d leaves with %+v, %v", i, sum, err)
			}
		})
	})
}

// A firewall that resets connections costs a job nothing. On a machine that is
// very busy, coming back may take longer than the grace for it; then the agent is
// lost, as it should be, and the test tries again.
func TestAConnectionThatIsResetIsMadeAgain(t *testing.T) {
	for range 10 {
		if survivesResets(t, 3) {
			return
		}
	}
	t.Error("no agent survived the resets of its connection")
}

func survivesResets(t *testing.T, resets int) bool {
	j := start(t, LeaderConfig{Agents: 3})
	sessions := j.agents(3)
	j.worlds(sessions)
	for i := range resets {
		j.reset("agent-1")
		if !j.comesBack(sessions[1], i+2) {
			return false
		}
		if err := sessions[1].Progress(j.ctx, nil); err != nil { // a call in the middle of it
			return false
		}
	}
	if err := sessions[2].Fail(j.ctx, Worker{Rank: 2, Code: 3}); err != nil {
		t.Fatal(err)
	}
	if v, ok := j.ended(sessions[1]).(*Verdict); !ok || v.Kind != Failed {
		return false
	}
	for i, sum := range j.finish(sessions, stopped) {
		if sum.Verdict.Kind != Failed || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	}
	return true
}

// comesBack waits until an agent has made its nth connection, or its job ends.
func (j *job) comesBack(s *Session, n int) bool {
	j.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		j.mu.Lock()
		made := len(j.wires[s.config.Self.ID])
		j.mu.Unlock()
		if made >= n {
			return true
		}
		select {
		case <-tick.C:
		case <-s.Context().Done():
			return false
		case <-j.ctx.Done():
			j.t.Fatalf("%s has made %d connections, not %d", s.config.Self.ID, made, n)
		}
	}
}

// A store that has taken another's place knows nothing of the job. Its own job
// loses nobody by the visit.
func TestAnotherStoreAtTheSameAddress(t *testing.T) {
	j, other := start(t, LeaderConfig{Agents: 2}), start(t, LeaderConfig{Agents: 2})
	sessions, others := j.agents(2), other.agents(2)
	j.worlds(sessions)
	other.worlds(others)
	j.mu.Lock()
	j.address = other.address
	j.mu.Unlock()
	soon(t, "the news", func() {
		j.reset("agent-1")
		if cause := j.ended(sessions[1]); cause != ErrStoreLost {
			t.Errorf("the job ended with %v", cause)
		}
	})
	for i, sum := range other.finish(others, succeeded) {
		if sum.Verdict.Kind != Done {
			t.Errorf("agent %d of the other job: %v", i, sum.Verdict)
		}
	}
}

func TestJoinEndsWithItsContext(t *testing.T) {
	why := errors.New("asked to")
	accepts, err := net.Listen("tcp", "127.0.0.1:0") // and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer accepts.Close()
	for name, dial := range map[string]func(context.Context) (net.Conn, error){
		"nobody answers": func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
		"refused":        func(context.Context) (net.Conn, error) { return nil, errors.New("refused") },
		"silent": func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", accepts.Addr().String())
		},
	} {
		t.Run(name, func(t *testing.T) {
			dialled := make(chan struct{}, 100)
			client, err := Dial(func(ctx context.Context) (net.Conn, error) { dialled <- struct{}{}; return dial(ctx) }, presence.DefaultTimeout)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { <-dialled; cancel(why) }()
			soon(t, "Join", func() {
				if _, err := Join(ctx, client, Config{Job: "test", Self: member(0)}); !errors.Is(err, why) {
					t.Errorf("Join: %v", err)
				}
			})
		})
	}
}

// A store that goes while an agent comes to it does not hold it.
func TestTheStoreGoesDuringJoin(t *testing.T) {
	t.Parallel()
	for name, hangUp := range map[string]func(*net.TCPConn){
		"before it answers": func(c *net.TCPConn) { c.CloseWrite() },
		"never there":       func(c *net.TCPConn) { c.Close() },
		"after it answered": func(*net.TCPConn) {},
	} {
		t.Run(name, func(t *testing.T) {
			j := start(t, LeaderConfig{Agents: 2})
			dialled := false
			client, err := Dial(func(ctx context.Context) (net.Conn, error) {
				if dialled {
					return nil, errors.New("refused")
				}
				dialled = true
				conn, err := new(net.Dialer).DialContext(ctx, "tcp", j.address)
				if err == nil {
					hangUp(conn.(*net.TCPConn))
				}
				return conn, err
			}, presence.DefaultTimeout)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if name == "after it answered" {
				client.ActiveConnection().Connect()
				j.close()
			}
			soon(t, "Join", func() {
				if _, err := Join(j.ctx, client, Config{Job: "test", Self: member(0), ConnectTimeout: time.Second}); !errors.Is(err, ErrStoreLost) {
					t.Errorf("Join: %v", err)
				}
			})
		})
	}
}

func TestStragglersAreNamed(t *testing.T) {
	told := make(chan Stragglers, 1)
	j := start(t, LeaderConfig{Agents: 3, StraggleNotice: time.Millisecond, Straggling: func(s Stragglers) { told <- s }})
	two := member(1)
	two.Slots = 2
	sessions := []*Session{j.join(member(0)), j.join(two), j.join(member(2))}
	j.worlds(sessions)
	if err := sessions[1].Progress(j.ctx, []Worker{{Rank: 2}}); err != nil {
		t.Fatal(err)
	}
	select {
	case s := <-told:
		if want := "ranks 0 (node0), 1 (node1), 3 (node2) still run 1ms after rank 2 ended well"; s.String() != want {
			t.Errorf("told %q, want %q", s, want)
		}
	case <-j.ctx.Done():
		t.Fatal("nobody was told")
	}
	j.settle(sessions[0], succeeded(0))
	j.settle(sessions[1], succeeded(1), succeeded(2))
	j.settle(sessions[2], succeeded(3))
	if v := j.leave(sessions[0]).Verdict; v.Kind != Done {
		t.Errorf("verdict %v", v)
	}
}

func TestStragglersAreStopped(t *testing.T) {
	j := start(t, LeaderConfig{Agents: 3, ExitTimeout: 10 * time.Millisecond})
	sessions := j.agents(3)
	j.worlds(sessions)
	j.settle(sessions[0], succeeded(0))
	v, ok := j.ended(sessions[1]).(*Verdict)
	if want := "ranks 1 (node1), 2 (node2) still run 10ms after rank 0 ended well"; !ok || v.Kind != Straggling || v.Text != want {
		t.Errorf("verdict %+v, want %q", v, want)
	}
	j.settle(sessions[1], stopped(1))
	j.settle(sessions[2], stopped(2))
	each(sessions, func(i int, s *Session) {
		if sum := j.leave(s); sum.Verdict.Kind != Straggling || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	})
}
