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
	world time.Duration // first connects, until the last knows its world
	known time.Duration // the job ends, until the last knows of it
	gone  time.Duration // the job ends, until the last knows that all have settled

	joinCPU, endCPU, idleCPU time.Duration // of the store's process
	agentsCPU                time.Duration // of the agents' process, from the beginning to the end
	empty, peak              int64         // bytes of memory of the store's process, before the agents and at most
	alone, busy              int           // goroutines of the store's process, before the agents and when all are in
	bytes                    int64         // on all connections, both ways
	changes                  int64         // of the store's keys: transactions that wrote
	dials                    int64         // connections that were tried
}

// limit is how long one run may take.
const limit = 5 * time.Minute

// fleet is the agents of one run.
type fleet struct {
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
	f := &fleet{ctx: ctx, store: store, agents: make([]*agent, n)}
	defer func() { err = errors.Join(err, f.close()) }()
	if f.dial, err = f.dialer(o); err != nil {
		return r, err
	}
	err = f.measure(o, &r)
	return r, err
}

// measure lets the agents meet, idle and end, and asks the store in between.
func (f *fleet) measure(o options, r *result) error {
	before, err := f.store.usage()
	if err != nil {
		return err
	}
	own, _ := usage()
	began := time.Now()
	if err := f.each(f.join); err != nil {
		return err
	}
	r.world = time.Since(began)
	joined, err := f.store.usage()
	if err != nil {
		return err
	}
	<-time.After(o.idle)
	idled, err := f.store.usage()
	if err != nil {
		return err
	}
	if err := f.finish(o, r); err != nil {
		return err
	}
	ended, err := f.store.usage()
	after, _ := usage()
	r.joinCPU, r.idleCPU, r.endCPU, r.agentsCPU = joined.cpu-before.cpu, idled.cpu-joined.cpu, ended.cpu-idled.cpu, after-own
	r.empty, r.peak, r.alone, r.busy = before.peak, ended.peak, before.goroutines, joined.goroutines
	r.bytes, r.dials = f.bytes.Load(), f.dials.Load()
	return err
}

// dialer returns how agents connect: as package meet does, once it knows the
// store's address.
func (f *fleet) dialer(o options) (func(context.Context) (net.Conn, error), error) {
	plain := func(ctx context.Context) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", f.store.address)
		return counted{conn, &f.bytes}, err
	}
	if !o.tls {
		return plain, nil
	}
	if _, err := f.store.key.ClientTLS(); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := plain(ctx)
		if err != nil {
			return nil, err
		}
		cfg, err := f.store.key.ClientTLS() // each agent mints a certificate of its own
		if err != nil {
			return nil, err
		}
		c := tls.Client(conn, cfg)
		if err := c.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		return c, greeted(c)
	}, nil
}

// greeted reads the line that a store begins with.
func greeted(c net.Conn) error {
	for b := make([]byte, 1); ; {
		if _, err := c.Read(b); err != nil {
			return err
		}
		if b[0] == '\n' {
			return nil
		}
	}
}

// each does something for all agents at once, and returns the first error.
func (f *fleet) each(do func(i int) error) error {
	var all sync.WaitGroup
	errs := make(chan error, len(f.agents))
	for i := range f.agents {
		all.Go(func() {
			if err := do(i); err != nil {
				errs <- fmt.Errorf("agent %d: %w", i, err)
			}
		})
	}
	all.Wait()
	close(errs)
	if failed := len(errs); failed > 0 {
		return fmt.Errorf("%d of %d failed, first %w", failed, len(f.agents), <-errs)
	}
	return nil
}

// join makes an agent a member and waits for its world.
func (f *fleet) join(i int) (err error) {
	a := &agent{}
	f.agents[i] = a
	dial := func(ctx context.Context) (net.Conn, error) {
		if a.cut.Load() {
			return nil, errors.New("cut")
		}
		f.dials.Add(1)
		conn, err := f.dial(ctx)
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
	if a.session, err = rdzv.Join(f.ctx, a.client, rdzv.Config{Job: "scale", Self: self, ConnectTimeout: time.Minute}); err != nil {
		return err
	}
	a.world, err = a.session.World(f.ctx)
	return err
}

// finish ends the job and sees all agents off.
func (f *fleet) finish(o options, r *result) error {
	var known, gone latest
	began := time.Now()
	lost := -1
	switch o.end {
	case "loss":
		lost = 0
		f.agents[0].cut.Store(true)
		f.agents[0].wire.Close()
	case "fail":
		if err := f.agents[0].session.Fail(f.ctx, rdzv.Worker{Rank: 0, Code: 1}); err != nil {
			return err
		}
	}
	err := f.each(func(i int) error {
		if i == lost {
			return nil
		}
		a := f.agents[i]
		w := rdzv.Worker{Rank: a.world.Seat.Rank}
		if o.end != "done" {
			<-a.session.Context().Done()
			known.note(time.Since(began))
			w.Signal, w.Stopped = 15, true
		}
		if err := a.session.Settle(f.ctx, []rdzv.Worker{w}); err != nil {
			return err
		}
		sum, err := a.session.Leave(f.ctx)
		gone.note(time.Since(began))
		if err == nil && !sum.Settled {
			err = fmt.Errorf("not settled: %s", sum.Unsettled)
		}
		return err
	})
	r.known, r.gone = known.get(), gone.get()
	return errors.Join(err, f.count(r))
}

// count asks the store how often it was written to. The last agent is never the lost one.
func (f *fleet) count(r *result) error {
	answer, err := f.agents[len(f.agents)-1].client.Get(f.ctx, "none")
	if err == nil {
		r.changes = answer.Header.Revision
	}
	return err
}

func (f *fleet) close() error {
	f.each(func(i int) error {
		if a := f.agents[i]; a != nil && a.client != nil {
			a.client.Close()
		}
		return nil
	})
	return f.store.end()
}

// latest is the largest of the durations that were noted.
type latest struct {
	mu sync.Mutex
	d  time.Duration
}

func (l *latest) note(d time.Duration) {
	l.mu.Lock()
	l.d = max(l.d, d)
	l.mu.Unlock()
}

func (l *latest) get() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.d
}

// counted is a connection whose bytes are counted.
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
