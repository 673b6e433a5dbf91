package rdzv

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"rdzv/rdzv/presence"
)

func TestStoreLost(t *testing.T) {
	for name, until := range map[string]func(*job, []*Session){
		"before the world": func(*job, []*Session) {},
		"after the world":  func(j *job, s []*Session) { j.worlds(s) },
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
			j := start(t, LeaderConfig{Tasks: agents})
			sessions := j.agents(4)
			until(j, sessions)
			within5s(t, "the end of the job", func() {
				j.close()
				for i, s := range sessions {
					if cause := j.ended(s); cause != ErrStoreLost {
						t.Errorf("agent %d: %v", i, cause)
					}
				}
			})
			within5s(t, "leaving", func() {
				each(sessions, func(i int, s *Session) {
					if err := s.Settle(j.ctx, nil); i != 0 && !errors.Is(err, ErrStoreLost) {
						t.Errorf("agent %d: Settle: %v", i, err)
					}
					if sum, err := s.Leave(j.ctx); !errors.Is(err, ErrStoreLost) ||
						sum.Verdict != nil {
						t.Errorf("agent %d: Leave: %+v, %v", i, sum, err)
					}
				})
			})
			if err := <-j.led; err == nil {
				t.Error("the leader returned no error")
			}
		})
	}
}

func TestStoreLostAfterTheVerdict(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 3})
	sessions := j.agents(3)
	j.worlds(sessions)
	if err := sessions[1].Fail(j.ctx, Worker{Rank: 1, Code: 3}); err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		j.ended(s)
	}
	j.close()
	within5s(t, "leaving", func() {
		each(sessions, func(i int, s *Session) {
			if sum, err := s.Leave(j.ctx); !errors.Is(err, ErrStoreLost) || sum.Verdict.Code != 3 {
				t.Errorf("agent %d: Leave: %+v, %v", i, sum, err)
			}
		})
	})
}

// An agent that reconnects to another store loses its own. The other store's job does not
// regard it as lost.
func TestAnotherStoreAtTheSameAddress(t *testing.T) {
	j, other := start(t, LeaderConfig{Tasks: 2}), start(t, LeaderConfig{Tasks: 2})
	sessions, others := j.agents(2), other.agents(2)
	j.worlds(sessions)
	other.worlds(others)
	j.mu.Lock()
	j.address = other.address
	j.mu.Unlock()
	within5s(t, "the end of the job", func() {
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
	why := errors.New("canceled")
	accepts, err := net.Listen("tcp", "127.0.0.1:0") // and sends nothing
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
			client, err := Dial(func(ctx context.Context) (net.Conn,
				error) {
				dialled <- struct{}{}
				return dial(ctx)
			}, presence.DefaultTimeout)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { <-dialled; cancel(why) }()
			within5s(t, "Join", func() {
				if _, err := Join(ctx, client,
					Config{Job: "test", Self: member(0)}); !errors.Is(err, why) {
					t.Errorf("Join: %v", err)
				}
			})
		})
	}
}

// Join returns if the store is lost meanwhile.
func TestStoreLostDuringJoin(t *testing.T) {
	t.Parallel()
	for name, hangUp := range map[string]func(*net.TCPConn){
		"before it answers": func(c *net.TCPConn) { c.CloseWrite() },
		"at once":           func(c *net.TCPConn) { c.Close() },
		"after it answered": func(*net.TCPConn) {},
	} {
		t.Run(name, func(t *testing.T) {
			j := start(t, LeaderConfig{Tasks: 2})
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
			within5s(t, "Join", func() {
				if _, err := Join(j.ctx, client,
					Config{Job: "test", Self: member(0),
						ConnectTimeout: time.Second}); !errors.Is(err, ErrStoreLost) {
					t.Errorf("Join: %v", err)
				}
			})
		})
	}
}
