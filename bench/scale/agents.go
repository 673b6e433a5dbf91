package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv"
	"rdzv/rdzv/presence"
)

// result is what one run took.
type result struct {
	// from the first connection until the last agent knows its world
	world time.Duration
	// from the end of the job until the last agent knows of it, and until it knows that all have
	// settled
	ended, settled time.Duration

	joinCPU, endCPU, idleCPU time.Duration // of the store's process
	agentsCPU                time.Duration // of the agents' process, in all
	emptyBytes, peakBytes    int64         // memory of the store's process: without agents, at most
	emptyGo, busyGo          int           // goroutines of it: without agents, when all have joined
	bytes                    int64         // on all connections, in both directions
	changes                  int64         // transactions that wrote to the store
	dials                    int64         // attempts to connect
}

// limit is how long one run may take.
const limit = 5 * time.Minute

// simulation is the agents of one run.
type simulation struct {
	ctx    context.Context
	store  *process
	dial   func(context.Context) (net.Conn, error)
	bytes  atomic.Int64
	dials  atomic.Int64
	agents []*agent
}

type agent struct {
	wire    net.Conn
	cut     atomic.Bool
	client  *clientv3.Client
	session *rdzv.Session
	world   rdzv.World
}

func run(n int, o options) (r result, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	store, err := startStore(n, o)
	if err != nil {
		return r, err
	}
	s := &simulation{ctx: ctx, store: store, agents: make([]*agent, n)}
	defer func() { err = errors.Join(err, s.close()) }()
	if s.dial, err = s.dialer(o); err != nil {
		return r, err
	}
	err = s.measure(o, &r)
	return r, err
}

// measure lets the agents join, wait and end, and asks the store for its usage in between.
func (s *simulation) measure(o options, r *result) error {
	before, err := s.store.usage()
	if err != nil {
		return err
	}
	own, _ := usage()
	began := time.Now()
	if err := s.each(s.join); err != nil {
		return err
	}
	r.world = time.Since(began)
	joined, err := s.store.usage()
	if err != nil {
		return err
	}
	<-time.After(o.idle)
	idled, err := s.store.usage()
	if err != nil {
		return err
	}
	if err := s.finish(o, r); err != nil {
		return err
	}
	ended, err := s.store.usage()
	after, _ := usage()
	r.joinCPU, r.idleCPU = joined.cpu-before.cpu, idled.cpu-joined.cpu
	r.endCPU, r.agentsCPU = ended.cpu-idled.cpu, after-own
	r.emptyBytes, r.peakBytes = before.peak, ended.peak
	r.emptyGo, r.busyGo = before.goroutines, joined.goroutines
	r.bytes, r.dials = s.bytes.Load(), s.dials.Load()
	return err
}

// dialer returns the function with which agents connect, as they do in package meet when the
// address of the store is known.
func (s *simulation) dialer(o options) (func(context.Context) (net.Conn, error), error) {
	plain := func(ctx context.Context) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.store.address)
		return counted{conn, &s.bytes}, err
	}
	if !o.tls {
		return plain, nil
	}
	if _, err := s.store.key.ClientTLS(); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := plain(ctx)
		if err != nil {
			return nil, err
		}
		cfg, err := s.store.key.ClientTLS() // each agent makes a certificate of its own
		if err != nil {
			return nil, err
		}
		c := tls.Client(conn, cfg)
		if err := c.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		return c, readGreeting(c)
	}, nil
}

// readGreeting reads the line that a store sends first.
func readGreeting(c net.Conn) error {
	for b := make([]byte, 1); ; {
		if _, err := c.Read(b); err != nil {
			return err
		}
		if b[0] == '\n' {
			return nil
		}
	}
}

// each calls do for all agents concurrently and returns the first error.
func (s *simulation) each(do func(i int) error) error {
	var all sync.WaitGroup
	errs := make(chan error, len(s.agents))
	for i := range s.agents {
		all.Go(func() {
			if err := do(i); err != nil {
				errs <- fmt.Errorf("agent %d: %w", i, err)
			}
		})
	}
	all.Wait()
	close(errs)
	if failed := len(errs); failed > 0 {
		return fmt.Errorf("%d of %d failed, first %w", failed, len(s.agents), <-errs)
	}
	return nil
}

// join makes agent i a member and waits for its world.
func (s *simulation) join(i int) (err error) {
	a := &agent{}
	s.agents[i] = a
	dial := func(ctx context.Context) (net.Conn, error) {
		if a.cut.Load() {
			return nil, errors.New("disconnected")
		}
		s.dials.Add(1)
		conn, err := s.dial(ctx)
		if err != nil {
			return nil, err
		}
		a.wire = conn
		return conn, nil
	}
	if a.client, err = rdzv.Dial(dial, presence.DefaultTimeout); err != nil {
		return err
	}
	self := rdzv.Member{
		ID: fmt.Sprint("agent-", i), Host: fmt.Sprint("node", i/8), Node: fmt.Sprint(i / 8), PID: i,
		Rank: i, LocalRank: i % 8, LocalSize: 8, NodeRank: i / 8, Slots: 1,
	}
	cfg := rdzv.Config{Job: "scale", Self: self, ConnectTimeout: time.Minute}
	if a.session, err = rdzv.Join(s.ctx, a.client, cfg); err != nil {
		return err
	}
	a.world, err = a.session.World(s.ctx)
	return err
}

// finish ends the job and lets all agents leave.
func (s *simulation) finish(o options, r *result) error {
	var ended, settled latest
	began := time.Now()
	lost := -1
	switch o.end {
	case "loss":
		lost = 0
		s.agents[0].cut.Store(true)
		s.agents[0].wire.Close()
	case "fail":
		if err := s.agents[0].session.Fail(s.ctx, rdzv.Worker{Rank: 0, Code: 1}); err != nil {
			return err
		}
	}
	err := s.each(func(i int) error {
		if i == lost {
			return nil
		}
		a := s.agents[i]
		w := rdzv.Worker{Rank: a.world.Seat.Rank}
		if o.end != "done" {
			<-a.session.Context().Done()
			ended.add(time.Since(began))
			w.Signal, w.Stopped = 15, true
		}
		if err := a.session.Settle(s.ctx, []rdzv.Worker{w}); err != nil {
			return err
		}
		sum, err := a.session.Leave(s.ctx)
		settled.add(time.Since(began))
		if err == nil && !sum.Settled {
			err = fmt.Errorf("not settled: %s", sum.Unsettled)
		}
		return err
	})
	r.ended, r.settled = ended.get(), settled.get()
	return errors.Join(err, s.count(r))
}

// count asks the store for its revision. The last agent is never the lost one.
func (s *simulation) count(r *result) error {
	answer, err := s.agents[len(s.agents)-1].client.Get(s.ctx, "none")
	if err == nil {
		r.changes = answer.Header.Revision
	}
	return err
}

func (s *simulation) close() error {
	s.each(func(i int) error {
		if a := s.agents[i]; a != nil && a.client != nil {
			a.client.Close()
		}
		return nil
	})
	return s.store.end()
}

// latest is the largest of the durations that were added.
type latest struct {
	mu sync.Mutex
	d  time.Duration
}

func (l *latest) add(d time.Duration) {
	l.mu.Lock()
	l.d = max(l.d, d)
	l.mu.Unlock()
}

func (l *latest) get() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.d
}

// counted is a connection that counts its bytes.
type counted struct {
	net.Conn
	bytes *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.bytes.Add(int64(n))
	return n, err
}
