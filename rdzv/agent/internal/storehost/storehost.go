// Package storehost is the store of a job in the process of one of its agents, with the leader of
// the job beside it.
package storehost

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv"
	"rdzv/rdzv/presence"
)

// Store is a store in this process that has been started, a store.Server.
type Store interface {
	Client() *clientv3.Client
	Serve(l net.Listener, ended func(id string, loss *presence.Loss))
	Drain(ctx context.Context) error
	Connected() int
	IsConnected(id string) bool
	Close() error
}

// Host is a store in this process, and the leader.
type Host struct {
	store  Store
	serve  func()             // lets other agents connect, once
	end    func() error       // closes the store, once
	reader string             // ID of the agent that reads all outcomes; "" if none does
	cancel context.CancelFunc // of the leader
	wg     sync.WaitGroup
}

// New leads a job in a store, which it closes if it fails. listener is nil for a single agent. The
// leader's own error goes to Notify, which is required.
func New(
	ctx context.Context, s Store, listener net.Listener, leads rdzv.LeaderConfig,
) (*Host, error) {
	leader, err := rdzv.NewLeader(ctx, s.Client(), leads)
	if err != nil {
		s.Close()
		return nil, err
	}
	leading, cancel := context.WithCancel(context.Background())
	h := &Host{store: s, cancel: cancel, end: sync.OnceValue(s.Close)}
	failed := func(err error) {
		if err != nil && !errors.Is(err, context.Canceled) {
			leads.Notify(rdzv.Warning{Err: err})
			h.end() // without a leader the loss of the store ends the job for all
		}
	}
	h.serve = sync.OnceFunc(func() {
		if listener != nil {
			s.Serve(listener, func(id string, loss *presence.Loss) {
				failed(leader.AgentEnded(leading, id, loss))
			})
		}
	})
	h.wg.Go(func() {
		failed(leader.Run(leading))
		cancel() // nobody reads any more which agents have left
	})
	return h, nil
}

// Client is a client of the store.
func (h *Host) Client() *clientv3.Client { return h.store.Client() }

// Serve lets other agents connect.
func (h *Host) Serve() { h.serve() }

// ReadBy notes which agent reads all outcomes when all have settled, if another one does.
func (h *Host) ReadBy(s rdzv.Summary) {
	if v := s.Verdict; v != nil && v.Kind == rdzv.Failed && s.Settled {
		h.reader = v.By
	}
}

// DrainTimeout is how long the host of the store waits for the other agents to leave if none does.
// They leave at once, except for an agent that is stopped, for example by a debugger, but thousands
// of them need some time.
const DrainTimeout = 2 * time.Second

// readTimeout is how long it waits for the agent that reads all outcomes.
const readTimeout = time.Minute

// Close closes the store when the other agents have left.
func (h *Host) Close() error {
	h.drain()
	h.cancel()
	h.wg.Wait()
	return h.end()
}

// drain waits until the other agents have left. One that has not left after drain sees the
// connection break.
func (h *Host) drain() {
	for began, connected := time.Now(), h.store.Connected(); connected > 0; {
		ctx, cancel := context.WithTimeout(context.Background(), DrainTimeout)
		_ = h.store.Drain(ctx)
		cancel()
		before := connected
		connected = h.store.Connected()
		reads := h.store.IsConnected(h.reader) && time.Since(began) < readTimeout
		if connected == before && !reads {
			return
		}
	}
}
