package sharedstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv"
	"rdzv/rdzv/meet"
	"rdzv/rdzv/presence"
	"rdzv/rdzv/secret"
)

// place is a store and agents with the same token.
type place struct {
	t      *testing.T
	ctx    context.Context
	config Config
	*Server
}

func newPlace(t *testing.T) *place {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, ctx: ctx, config: Config{
		Env:    map[string]string{"XDG_RUNTIME_DIR": filepath.Join(dir, "run"), "HOME": dir},
		Listen: "127.0.0.1", PortLow: 21500, PortHigh: 21599,
		Token:   secret.NewToken(),
		Refused: func(n meet.Rejected) { t.Error(n) },
	}}
	p.start()
	t.Cleanup(p.stop)
	return p
}

func (p *place) start() {
	p.t.Helper()
	var err error
	if p.Server, err = Start(p.ctx, p.config); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) stop() {
	p.t.Helper()
	if p.Server == nil {
		return
	}
	if err := p.Close(); err != nil {
		p.t.Error(err)
	}
	p.Server = nil
	if left, err := os.ReadDir(p.config.Env["XDG_RUNTIME_DIR"]); err != nil || len(left) > 0 {
		p.t.Errorf("files left: %v, %v", left, err)
	}
}

// join joins an agent of a job of n agents.
func (p *place) join(job string, n int) (*rdzv.Session, error) {
	token, err := secret.ParseToken(p.config.Token)
	if err != nil {
		return nil, err
	}
	m, err := meet.Meet(p.ctx, meet.Config{
		Job: job, Rank: -1, Size: n, LocalSize: -1, Nodes: -1, Host: "node1", Store: p.Store,
		PortLo: p.config.PortLow, PortHi: p.config.PortHigh,
		Token: func() ([]byte, error) { return token, nil },
	}, nil)
	if err != nil {
		return nil, err
	}
	p.t.Cleanup(m.Close)
	client, err := rdzv.Dial(m.Dial, presence.MinTimeout)
	if err != nil {
		return nil, err
	}
	p.t.Cleanup(func() { client.Close() })
	return rdzv.Join(p.ctx, client, rdzv.Config{
		Job: job, Lead: &rdzv.LeaderConfig{Tasks: n}, PeerTimeout: presence.MinTimeout,
		Self: rdzv.Member{
			ID: rand.Text()[:8], Host: "node1", PID: 1, MasterPort: 29500,
			Tasks: rdzv.Unplaced(1), LocalSize: rdzv.Unknown, NodeRank: rdzv.Unknown,
		},
	})
}

// run runs a job in which an agent of two fails unless code is 0, and returns how it ended.
func (p *place) run(job string, code int) error {
	const agents = 2
	errs := make(chan error, agents)
	for range agents {
		go func() { errs <- p.agent(job, agents, code) }()
	}
	var err error
	for range agents {
		err = errors.Join(err, <-errs)
	}
	return err
}

func (p *place) agent(job string, agents, code int) error {
	s, err := p.join(job, agents)
	if err != nil {
		return err
	}
	var ended []rdzv.Worker
	if w, err := s.World(p.ctx); err == nil { // else the other agent has failed already
		ended = []rdzv.Worker{{Rank: w.Seat.First()}}
		if w.Seat.First() == 1 {
			ended[0].Code = code
		}
	}
	if err := s.Settle(p.ctx, ended); err != nil {
		return err
	}
	sum, err := s.Leave(p.ctx)
	switch {
	case err != nil:
		return err
	case sum.Verdict.Kind == rdzv.Done != (code == 0) || sum.Verdict.Code != code || !sum.Settled:
		return fmt.Errorf("job %s: %v, %+v, want code %d", job, sum.Verdict, sum, code)
	}
	return nil
}

// Of many jobs, of which some fail, no key is left, whether they have the same name one after
// another, or run at once.
func TestManyJobs(t *testing.T) {
	p := newPlace(t)
	for i := range 100 {
		if err := p.run("consecutive", i%3); err != nil {
			t.Fatalf("job %d: %v", i, err)
		}
	}
	var jobs sync.WaitGroup
	for i := range 20 {
		jobs.Go(func() {
			if err := p.run(fmt.Sprint("job", i), i%3); err != nil {
				t.Error(err)
			}
		})
	}
	jobs.Wait()
	p.awaitNoLease() // then their keys are gone, too
	left, err := p.store.Client().Get(p.ctx, "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil || len(left.Kvs) > 0 {
		t.Errorf("keys left: %v, %v", left, err)
	}
}

// awaitNoLease waits until no lease is left: one that an agent could not revoke within a second, in
// a busy store, expires.
func (p *place) awaitNoLease() {
	p.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for left := []clientv3.LeaseStatus(nil); ; {
		found, err := p.store.Client().Leases(p.ctx)
		if err == nil {
			left = found.Leases
		}
		if err == nil && len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-p.ctx.Done():
			p.t.Fatalf("leases left: %v, %v", left, err)
		}
	}
}

// A job whose workers run ends when the store is started again. Until then it is counted.
func TestRestart(t *testing.T) {
	p := newPlace(t)
	s, err := p.join("job", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.World(p.ctx); err != nil {
		t.Fatal(err)
	}
	if jobs, err := p.Jobs(p.ctx); err != nil || jobs != 1 {
		t.Errorf("%d jobs, %v", jobs, err)
	}
	p.stop()
	p.start()
	<-s.Context().Done()
	if err := context.Cause(s.Context()); !errors.Is(err, rdzv.ErrStoreLost) {
		t.Errorf("%v, want %v", err, rdzv.ErrStoreLost)
	}
	if _, err := s.Leave(p.ctx); !errors.Is(err, rdzv.ErrStoreLost) {
		t.Errorf("Leave: %v", err)
	}
	if err := p.run("job", 0); err != nil {
		t.Errorf("the next job: %v", err)
	}
}
