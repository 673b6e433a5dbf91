package rdzv

import (
	"context"
	"net"
	"net/url"
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
	return startPlainWith(t, 100*time.Millisecond)
}

// startPlainWith starts one with another election timeout, on which depends the shortest TTL that it
// grants.
func startPlainWith(t *testing.T, election time.Duration) *plain {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	c := embed.NewConfig()
	c.Dir = t.TempDir()
	c.ListenPeerUrls = nil
	c.ListenClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs = 10, uint(election.Milliseconds())
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
		PeerTimeout: presence.MinTimeout, jobTTL: 3 * presence.MinTimeout}
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
	p.t.Cleanup(func() { // the process of this agent is not gone
		p.revive(s.config.Self.ID) // otherwise it waits for the store
		s.close(errLeft, false)
	})
	if _, err := p.admin.Revoke(p.ctx, s.leases.own); err != nil {
		p.t.Fatal(err)
	}
}

// expire is lose, and lets the agent continue when the others consider it lost.
func (p *plain) expire(s *Session) {
	p.t.Helper()
	p.lose(s)
	p.await(s.registration.(*leased).run.lost(s.config.Self.ID), true)
	p.revive(s.config.Self.ID)
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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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

// The history of a store that others use too is not removed.
func TestAskInPlainStore(t *testing.T) {
	t.Parallel()
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
