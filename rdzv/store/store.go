package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"google.golang.org/grpc"

	"rdzv/rdzv/presence"
)

// Config configures a store.
type Config struct {
	// Dir is an existing directory, such as the user's runtime directory or /tmp, in which the
	// store creates a private one. Required.
	Dir string

	// PeerTimeout is how long an agent may be silent before it counts as lost. 0 means
	// presence.DefaultTimeout; the least is presence.MinTimeout. A longer timeout delays the
	// detection of a disconnected node; a shorter one causes more traffic of an idle job.
	PeerTimeout time.Duration

	// Shared is true for the store of many jobs, in which the agents elect the leader of each. It has
	// no presence service, so that they have leases.
	Shared bool

	// Failed is called with the reason if etcd cannot continue, for example because the disk is
	// full, after the store's files have been removed. It must end the process: it runs in one of
	// etcd's goroutines, for which others may wait forever, and when it returns etcd panics. With
	// nil there is only the panic.
	Failed func(error)
}

// A Server is a running store.
type Server struct {
	etcd     *embed.Etcd
	client   *clientv3.Client
	registry *presence.Registry
	grpc     *grpc.Server
	dir      *dir

	timeout time.Duration // Config.PeerTimeout
	shared  bool
	wg      sync.WaitGroup
}

// Start starts a store and returns when it answers. ctx bounds only the start. The error says why
// the store could not start: too short a PeerTimeout, less free disk space than it needs, a
// directory that cannot be created, or an error of etcd or of ctx.
func Start(ctx context.Context, c Config) (*Server, error) {
	c.PeerTimeout = cmp.Or(c.PeerTimeout, presence.DefaultTimeout)
	if c.PeerTimeout < presence.MinTimeout {
		return nil, fmt.Errorf("cannot start the store with peer timeout %v: the minimum is %v",
			c.PeerTimeout, presence.MinTimeout)
	}
	if err := checkSpace(c.Dir); err != nil {
		return nil, err
	}
	d, err := newDir(c.Dir)
	if err != nil {
		return nil, err
	}
	e, err := startEtcd(ctx, d.path, c.Shared, fatalErrors{d, c.Failed})
	if err != nil {
		d.remove()
		return nil, fmt.Errorf("cannot start the store in %q: %w", d.path, err)
	}
	s := &Server{etcd: e, client: v3client.New(e.Server), dir: d, timeout: c.PeerTimeout}
	// etcd's cluster id cannot serve as the generation: it is the same for all of these stores.
	s.registry, s.shared = presence.NewRegistry(rand.Text()), c.Shared
	return s, nil
}

// Serve serves the other agents on l until Close, and returns at once. l must accept connections of
// verified peers only. Without Serve only this process can use the store. ended is called when an
// agent has disconnected, with the reason unless it said goodbye, as rdzv.Leader.AgentEnded
// requires. It is not called in a shared store.
func (s *Server) Serve(l net.Listener, ended func(id string, loss *presence.Loss)) {
	s.grpc = v3rpc.Server(s.etcd.Server, nil, nil, presence.ServerOptions(s.timeout)...)
	if !s.shared {
		s.registry.Register(s.grpc, ended)
	}
	s.wg.Go(func() { s.grpc.Serve(presence.NewListener(l, s.timeout)) })
}

// Client returns a client that calls the server in this process. Close closes it.
func (s *Server) Client() *clientv3.Client { return s.client }

// Drain waits until no agent is connected. It returns the cause if ctx ends first.
func (s *Server) Drain(ctx context.Context) error { return s.registry.Empty(ctx) }

// Connected returns how many agents are connected.
func (s *Server) Connected() int { return s.registry.Len() }

// IsConnected tells whether an agent is connected.
func (s *Server) IsConnected(id string) bool { return s.registry.Has(id) }

// Close removes the store's files, then closes the connections of agents that are still connected:
// a broken connection means that nothing of the store is left.
func (s *Server) Close() error {
	s.client.Close() // returns only the error of its context, which the call itself cancels
	s.etcd.Close()
	err := s.dir.remove()
	s.registry.Close()
	if s.grpc != nil {
		s.grpc.Stop()
	}
	s.wg.Wait()
	return err
}
