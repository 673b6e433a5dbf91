package rdzv

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"rdzv/rdzv/internal/registration"
)

// startLeased starts an etcd that knows nothing of rdzv, in which the agents of jobs elect the
// leader.
func startLeased(t *testing.T, c LeaderConfig) *job {
	t.Helper()
	return startEtcd(t, c, 100*time.Millisecond)
}

func startPlain(t *testing.T) *job {
	t.Helper()
	return startLeased(t, LeaderConfig{})
}

// startEtcd starts one with another election timeout, on which depends the shortest TTL that it
// grants.
func startEtcd(t *testing.T, lead LeaderConfig, election time.Duration) *job {
	t.Helper()
	return startConfigured(t, lead, func(c *embed.Config) {
		c.TickMs, c.ElectionMs = 10, uint(election.Milliseconds())
	})
}

// startConfigured starts one with changes of its configuration.
func startConfigured(t *testing.T, lead LeaderConfig, change func(*embed.Config)) *job {
	t.Helper()
	j := newJob(t, lead, time.Hour)
	c := embed.NewConfig()
	c.Dir = t.TempDir()
	c.ListenPeerUrls = nil
	c.ListenClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	change(c)
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case <-j.ctx.Done():
		t.Fatal("etcd does not answer")
	}
	j.etcd, j.address = e, e.Clients[0].Addr().String()
	j.admin = j.client("admin")
	return j
}

// joinLeased joins agent i of n.
func (j *job) joinLeased(i, n int) *Session {
	j.t.Helper()
	return j.enter(j.leased(i, n))
}

// leased is the configuration of agent i of n.
func (j *job) leased(i, n int) Config {
	c := j.agent(member(i))
	c.Lead.Tasks = n
	return c
}

func (j *job) leasedAgents(joined, n int) []*Session {
	j.t.Helper()
	sessions := make([]*Session, joined)
	for i := range sessions {
		sessions[i] = j.joinLeased(i, n)
	}
	return sessions
}

// lose lets an agent be lost at once.
func (j *job) lose(s *Session) {
	j.t.Helper()
	j.kill(s.config.Self.ID)
	if j.etcd == nil {
		return
	}
	j.t.Cleanup(func() { // the process of this agent is not gone
		j.revive(s.config.Self.ID) // otherwise it waits for the store
		s.close(errLeft, registration.Nothing)
	})
	if _, err := j.admin.Revoke(j.ctx, s.registration.Lease()); err != nil {
		j.t.Fatal(err)
	}
}

// expire is lose, and lets the agent continue when the others consider it lost.
func (j *job) expire(s *Session) {
	j.t.Helper()
	j.lose(s)
	j.await(s.registration.Run.Keys.Lost().Of(s.config.Self.ID), true)
	j.revive(s.config.Self.ID)
}

// leaderOf returns another leader for the first agent, with what is in the store.
func (j *job) leaderOf(s *Session) *Leader {
	j.t.Helper()
	r := s.registration
	turn, err := r.AwaitTurn(j.ctx)
	if err != nil {
		j.t.Fatal(err)
	}
	l := &Leader{config: *s.config.Lead, client: r.Store.Client, run: r.Run.Keys, turn: turn}
	if _, err := l.begin(j.ctx); err != nil {
		j.t.Fatal(err)
	}
	return l
}

// keysLeft are all keys in the store.
func (j *job) keysLeft() (left []string) {
	j.t.Helper()
	answer, err := j.admin.Get(j.ctx, "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		j.t.Fatal(err)
	}
	for _, kv := range answer.Kvs {
		left = append(left, string(kv.Key))
	}
	return left
}

// wantNothingLeft checks that the job has removed all keys and leases of a store that outlives it.
func (j *job) wantNothingLeft() {
	j.t.Helper()
	if j.etcd == nil {
		return
	}
	if left := j.keysLeft(); len(left) > 0 {
		j.t.Errorf("keys left: %q", left)
	}
	var leases []clientv3.LeaseStatus
	for range 100 { // an agent does not wait longer than 1 s for a store that is slow to revoke one
		answer, err := j.admin.Leases(j.ctx)
		if err != nil {
			j.t.Fatal(err)
		}
		if leases = answer.Leases; len(leases) == 0 {
			return
		}
		<-time.After(50 * time.Millisecond) // 5 s in all: shorter than any lease
	}
	j.t.Errorf("leases left: %v", leases)
}

// await waits until a key exists or does not exist.
func (j *job) await(key string, exists bool) {
	j.t.Helper()
	events := j.admin.Watch(j.ctx, key, clientv3.WithCreatedNotify())
	for range events {
		answer, err := j.admin.Get(j.ctx, key, clientv3.WithCountOnly())
		if err != nil {
			j.t.Fatal(err)
		}
		if answer.Count > 0 == exists {
			return
		}
	}
	j.t.Fatalf("%q: exists is not %t", key, exists)
}

func TestPlainStore(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	sessions := j.leasedAgents(3, 3)
	for i, w := range j.worlds(sessions) {
		if w.Size != 3 || w.StoreHost != "" || w.StoreRank != Unknown || w.Seat.First() != i {
			t.Errorf("agent %d: %+v", i, w)
		}
	}
	if err := sessions[2].Fail(j.ctx, Worker{Rank: 2, Code: 7}); err != nil {
		t.Fatal(err)
	}
	j.ended(sessions[0])
	workers := []Worker{stopped(0), stopped(1), {Rank: 2, Code: 7}}
	for i, sum := range j.finish(sessions, func(i int) Worker { return workers[i] }) {
		if v := sum.Verdict; v == nil || v.Kind != Failed || v.Rank != 2 || !sum.Settled {
			t.Errorf("agent %d: %+v, verdict %+v", i, sum, v)
		}
	}
	j.wantNothingLeft()
}

func TestPlainStoreNeedsLeaders(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	for want, change := range map[string]func(*Config){
		"Config.Lead":                        func(c *Config) { c.Lead = nil },
		"peer timeout 1s: the minimum is 3s": func(c *Config) { c.PeerTimeout = time.Second },
	} {
		c := j.leased(0, 2)
		change(&c)
		if _, err := Join(j.ctx, j.admin, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	j.wantNothingLeft()
}

// The next job of a name begins while an agent of the former one is still there.
func TestRunsOfOneName(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	old := j.leasedAgents(2, 2)
	j.worlds(old)
	if err := old[0].Fail(j.ctx, Worker{Rank: 0, Code: 3}); err != nil {
		t.Fatal(err)
	}
	j.ended(old[1])
	next := []*Session{j.joinLeased(2, 2), j.joinLeased(3, 2)}
	j.worlds(next)
	j.finish(old, stopped)
	for i, sum := range j.finish(next, succeeded) {
		if sum.Verdict.Kind != Done || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum.Verdict)
		}
	}
	j.wantNothingLeft()
}

// The history of a store that others use too is not removed.
func TestAskInPlainStore(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	sessions := make([]*Session, 2)
	for i := range sessions {
		c := j.leased(i, 2)
		c.Answer = func(context.Context, Question) ([]byte, error) { return []byte("yes"), nil }
		sessions[i] = j.joinWith(j.client(member(i).ID), c)
	}
	j.worlds(sessions)
	answers, missing, err := sessions[0].Ask(j.ctx, Question{Kind: "well"})
	if err != nil || len(answers) != 2 || len(missing) > 0 {
		t.Errorf("answers %v, missing %v, %v", answers, missing, err)
	}
	if _, err := j.admin.Get(j.ctx, "any", clientv3.WithRev(2)); err != nil {
		t.Errorf("the history: %v", err)
	}
	j.finish(sessions, succeeded)
	j.wantNothingLeft()
}
