package rdzv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"rdzv/rdzv/presence"
)

// plain is an etcd that knows nothing of rdzv, and agents of jobs that use it.
type plain struct {
	*job
	etcd  *embed.Etcd
	admin *clientv3.Client
}

func startPlain(t *testing.T) *plain {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	c := embed.NewConfig()
	c.Dir = t.TempDir()
	c.ListenPeerUrls = nil
	c.ListenClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs = 10, 100
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case <-ctx.Done():
		t.Fatal("etcd does not answer")
	}
	p := &plain{etcd: e, job: &job{
		t: t, ctx: ctx, address: e.Clients[0].Addr().String(), peerTimeout: time.Hour,
		conns: map[string][]net.Conn{}, dead: map[string]bool{}, frozen: new(sync.Map),
	}}
	p.admin = p.client("admin")
	return p
}

// joinLeased joins agent i of n.
func (p *plain) joinLeased(i, n int) *Session {
	p.t.Helper()
	return p.joinWith(p.client(member(i).ID), p.config(i, n))
}

func (p *plain) config(i, n int) Config {
	return Config{Job: "test", Self: member(i), Lead: &LeaderConfig{Agents: n},
		PeerTimeout: presence.MinTimeout}
}

func (p *plain) leasedAgents(joined, n int) []*Session {
	p.t.Helper()
	sessions := make([]*Session, joined)
	for i := range sessions {
		sessions[i] = p.joinLeased(i, n)
	}
	return sessions
}

// lose makes an agent silent and its lease expire at once.
func (p *plain) lose(s *Session) {
	p.t.Helper()
	p.kill(s.config.Self.ID)
	if _, err := p.admin.Revoke(p.ctx, s.leases.own); err != nil {
		p.t.Fatal(err)
	}
}

// keysLeft are all keys in the store.
func (p *plain) keysLeft() (left []string) {
	p.t.Helper()
	answer, err := p.admin.Get(p.ctx, "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		p.t.Fatal(err)
	}
	for _, kv := range answer.Kvs {
		left = append(left, string(kv.Key))
	}
	return left
}

func (p *plain) wantNothingLeft() {
	p.t.Helper()
	if left := p.keysLeft(); len(left) > 0 {
		p.t.Errorf("keys left: %q", left)
	}
	answer, err := p.admin.Leases(p.ctx)
	if err != nil || len(answer.Leases) > 0 {
		p.t.Errorf("leases left: %v, %v", answer, err)
	}
}

// await waits until a key exists or does not exist.
func (p *plain) await(key string, exists bool) {
	p.t.Helper()
	events := p.admin.Watch(p.ctx, key, clientv3.WithCreatedNotify())
	for range events {
		answer, err := p.admin.Get(p.ctx, key, clientv3.WithCountOnly())
		if err != nil {
			p.t.Fatal(err)
		}
		if answer.Count > 0 == exists {
			return
		}
	}
	p.t.Fatalf("%q: exists is not %t", key, exists)
}

func TestPlainStore(t *testing.T) {
	p := startPlain(t)
	sessions := p.leasedAgents(3, 3)
	for i, w := range p.worlds(sessions) {
		if w.Size != 3 || w.StoreHost != "" || w.StoreRank != Unknown || w.Seat.Rank != i {
			t.Errorf("agent %d: %+v", i, w)
		}
	}
	if err := sessions[2].Fail(p.ctx, Worker{Rank: 2, Code: 7}); err != nil {
		t.Fatal(err)
	}
	p.ended(sessions[0])
	workers := []Worker{stopped(0), stopped(1), {Rank: 2, Code: 7}}
	for i, sum := range p.finish(sessions, func(i int) Worker { return workers[i] }) {
		if v := sum.Verdict; v == nil || v.Kind != Failed || v.Rank != 2 || !sum.Settled {
			t.Errorf("agent %d: %+v, verdict %+v", i, sum, v)
		}
	}
	p.wantNothingLeft()
}

func TestPlainStoreNeedsLeaders(t *testing.T) {
	p := startPlain(t)
	for want, change := range map[string]func(*Config){
		"Config.Lead":                        func(c *Config) { c.Lead = nil },
		"peer timeout 1s: the minimum is 3s": func(c *Config) { c.PeerTimeout = time.Second },
	} {
		c := p.config(0, 2)
		change(&c)
		if _, err := Join(p.ctx, p.admin, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	p.wantNothingLeft()
}

func TestPlainStoreIsFull(t *testing.T) {
	p := startPlain(t)
	sessions := p.leasedAgents(2, 2)
	p.worlds(sessions)
	if _, err := Join(p.ctx, p.client("agent-2"), p.config(2, 2)); err != ErrFull {
		t.Errorf("one agent too many: %v", err)
	}
	p.finish(sessions, succeeded)
	p.wantNothingLeft()
}

// The next job of a name begins while an agent of the former one is still there.
func TestRunsOfOneName(t *testing.T) {
	p := startPlain(t)
	old := p.leasedAgents(2, 2)
	p.worlds(old)
	if err := old[0].Fail(p.ctx, Worker{Rank: 0, Code: 3}); err != nil {
		t.Fatal(err)
	}
	p.ended(old[1])
	next := []*Session{p.joinLeased(2, 2), p.joinLeased(3, 2)}
	p.worlds(next)
	p.finish(old, stopped)
	for i, sum := range p.finish(next, succeeded) {
		if sum.Verdict.Kind != Done || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum.Verdict)
		}
	}
	p.wantNothingLeft()
}

// The leader is the agent that joined first.
func TestLeaderIsLost(t *testing.T) {
	lost := func(t *testing.T, p *plain, rest []*Session, who string) {
		for _, s := range rest {
			wantLost(t, p.ended(s), who)
		}
	}
	for name, test := range map[string]struct {
		joined int
		lose   func(t *testing.T, p *plain, sessions []*Session)
		want   Kind
	}{
		"before the world": {2, func(t *testing.T, p *plain, all []*Session) {
			p.lose(all[0])
			lost(t, p, all[1:], "an agent (pid 1000 on node0)")
		}, Lost},
		"between the seats and the world": {2, func(t *testing.T, p *plain, all []*Session) {
			for i, s := range all {
				if err := s.put(p.ctx, s.keys.seat(s.config.Self.ID),
					encode(seatValue{Seat: Seat{Rank: i, Slots: 1}}), s.leases.job); err != nil {
					t.Fatal(err)
				}
			}
			p.lose(all[0])
			lost(t, p, all[1:], "an agent (pid 1000 on node0)")
		}, Lost},
		"while workers run": {3, func(t *testing.T, p *plain, all []*Session) {
			p.worlds(all)
			p.lose(all[0])
			lost(t, p, all[1:], "the agent of rank 0 (pid 1000 on node0)")
		}, Lost},
		"with its successor": {3, func(t *testing.T, p *plain, all []*Session) {
			p.worlds(all)
			p.kill(all[1].config.Self.ID)
			p.lose(all[0])
			p.lose(all[1])
			if v, ok := p.ended(all[2]).(*Verdict); !ok || v.Kind != Lost {
				t.Errorf("%+v", v)
			}
		}, Lost},
		"after the verdict": {3, func(t *testing.T, p *plain, all []*Session) {
			p.worlds(all)
			if err := all[1].End(p.ctx, 15, false); err != nil {
				t.Fatal(err)
			}
			p.ended(all[2])
			p.lose(all[0])
		}, Ended},
		"after it has settled": {3, func(t *testing.T, p *plain, all []*Session) {
			p.worlds(all)
			p.settle(all[0], succeeded(0))
			p.lose(all[0])
		}, Done},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPlain(t)
			all := p.leasedAgents(test.joined, 3)
			test.lose(t, p, all)
			rest := slices.DeleteFunc(all, func(s *Session) bool { return p.dead[s.config.Self.ID] })
			worker := succeeded
			if test.want != Done {
				worker = stopped
			}
			ranks := func(i int) Worker { return worker(i + test.joined - len(rest)) }
			for i, sum := range p.finish(rest, ranks) {
				if v := sum.Verdict; v == nil || v.Kind != test.want || !sum.Settled {
					t.Errorf("agent %d: %+v, verdict %+v", i, sum, v)
				}
			}
			p.wantNothingLeft()
		})
	}
}

func TestDeposedLeaderCannotWrite(t *testing.T) {
	p := startPlain(t)
	all := p.leasedAgents(2, 3)
	s := all[0]
	c, _, err := s.registration.(*leased).awaitTurn(p.ctx)
	if err != nil {
		t.Fatal(err)
	}
	l := newLeader(p.admin, s.keys, LeaderConfig{Job: "test", Agents: 3})
	l.candidate, l.lease = c, s.leases.job
	if err := l.commit(p.ctx, nil, l.put(s.keys.look(), encode(look{}))); err != nil {
		t.Fatalf("before: %v", err)
	}
	p.lose(s)
	for what, write := range map[string]func() error{
		"verdict": func() error { return l.writeVerdict(p.ctx, verdictOf(Done)) },
		"start":   func() error { return l.writeStart(p.ctx) },
		"world":   func() error { return l.publish(p.ctx, World{Job: "test"}) },
		"settled": func() error {
			l.verdict = new(Verdict)
			defer func() { l.verdict = nil }()
			return l.writeSettled(p.ctx)
		},
	} {
		if err := write(); !errors.Is(err, errDeposed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantLost(t, p.ended(all[1]), "an agent (pid 1000 on node0)")
	p.finish(all[1:], stopped)
}

// An agent stops without a trace, and then all others do.
func TestLeasesExpire(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.leasedAgents(3, 3)
	p.worlds(all)
	p.kill(all[1].config.Self.ID)
	for _, i := range []int{0, 2} {
		wantLost(t, p.ended(all[i]), "the agent of rank 1 (pid 1001 on node1)")
	}
	if cause := p.ended(all[1]); !errors.Is(cause, ErrStoreLost) {
		t.Errorf("the agent that cannot reach the store: %v", cause)
	}
	verdict := all[0].keys.verdict()
	p.kill(all[0].config.Self.ID)
	p.kill(all[2].config.Self.ID)
	began := time.Now()
	p.await(verdict, false)
	p.await(all[0].keys.member(all[0].config.Self.ID), false)
	if took := time.Since(began); took > 2*presence.MinTimeout+2*time.Second {
		t.Errorf("the keys were removed after %v", took)
	}
	p.wantNothingLeft()
}

// The store goes away while workers run.
func TestPlainStoreLost(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.leasedAgents(2, 2)
	p.worlds(all)
	for _, s := range all {
		p.freeze(s.config.Self.ID)
	}
	for i, s := range all {
		if cause := p.ended(s); !errors.Is(cause, ErrStoreLost) {
			t.Errorf("agent %d: %v", i, fmt.Sprint(cause))
		}
	}
}

// The store compacts what an agent and the leader have missed while they were disconnected.
func TestCompactionWhileDisconnected(t *testing.T) {
	p := startPlain(t)
	all := p.leasedAgents(3, 3)
	p.worlds(all)
	for _, i := range []int{0, 1} {
		p.kill(all[i].config.Self.ID)
	}
	if err := all[2].End(p.ctx, 15, true); err != nil {
		t.Fatal(err)
	}
	p.ended(all[2])
	answer, err := p.admin.Put(p.ctx, "other", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.admin.Compact(p.ctx, answer.Header.Revision); err != nil {
		t.Fatal(err)
	}
	if _, err := p.admin.Delete(p.ctx, "other"); err != nil {
		t.Fatal(err)
	}
	p.revive(all[0].config.Self.ID)
	p.revive(all[1].config.Self.ID)
	for i, s := range all {
		if v, ok := p.ended(s).(*Verdict); !ok || v.Kind != Ended {
			t.Errorf("agent %d: %v", i, context.Cause(s.Context()))
		}
	}
	for i, sum := range p.finish(all, stopped) {
		if !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	}
	p.wantNothingLeft()
}

// revive lets an agent connect again that was killed.
func (p *plain) revive(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead[id] = false
}

// The history of a store that others use too is not removed.
func TestAskInPlainStore(t *testing.T) {
	p := startPlain(t)
	sessions := make([]*Session, 2)
	for i := range sessions {
		c := p.config(i, 2)
		c.Answer = func(context.Context, Question) ([]byte, error) { return []byte("yes"), nil }
		sessions[i] = p.joinWith(p.client(member(i).ID), c)
	}
	p.worlds(sessions)
	answers, missing, err := sessions[0].Ask(p.ctx, Question{Kind: "well"})
	if err != nil || len(answers) != 2 || len(missing) > 0 {
		t.Errorf("answers %v, missing %v, %v", answers, missing, err)
	}
	if _, err := p.admin.Get(p.ctx, "any", clientv3.WithRev(2)); err != nil {
		t.Errorf("the history: %v", err)
	}
	p.finish(sessions, succeeded)
	p.wantNothingLeft()
}
