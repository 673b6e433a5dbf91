package store

import (
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

// Config says where a store keeps its files and whom it serves.
type Config struct {
	// Dir is an existing directory in which the store makes a private one of its
	// own, such as the user's runtime directory or /tmp. Required.
	Dir string

	// PeerTimeout is how long an agent may be silent before it counts as lost;
	// default presence.DefaultTimeout, at least presence.MinTimeout. Raising it
	// delays the news of an unplugged node; lowering it costs idle traffic.
	PeerTimeout time.Duration

	// Failed is told why etcd cannot go on, for example because the disk is full,
	// when the store's files have been removed. It is to end the process: it is
	// called by one of etcd's goroutines, others may wait for that one for ever,
	// and a panic follows. Default: the panic alone.
	Failed func(error)
}

// Server is a running store.
type Server struct {
	etcd     *embed.Etcd
	client   *clientv3.Client
	registry *presence.Registry
	grpc     *grpc.Server
	dir      *dir

	timeout time.Duration // of a silent agent
	wg      sync.WaitGroup
}

// Start runs a store and returns when it answers. ctx bounds only the start.
func Start(ctx context.Context, c Config) (*Server, error) {
	if c.PeerTimeout == 0 {
		c.PeerTimeout = presence.DefaultTimeout
	}
	if c.PeerTimeout < presence.MinTimeout {
		return nil, fmt.Errorf("cannot start the store with a peer timeout of %v: the shortest is %v", c.PeerTimeout, presence.MinTimeout)
	}
	if err := enoughRoom(c.Dir); err != nil {
		return nil, err
	}
	d, err := newDir(c.Dir)
	if err != nil {
		return nil, err
	}
	e, err := startEtcd(ctx, d.path, failure{d, c.Failed})
	if err != nil {
		d.remove()
		return nil, fmt.Errorf("cannot start the store in %q: %w", d.path, err)
	}
	s := &Server{etcd: e, client: v3client.New(e.Server), dir: d}
	s.registry = presence.NewRegistry(rand.Text()) // etcd's cluster id is the same for all that start alike
	s.timeout = c.PeerTimeout
	return s, nil
}

// Serve answers the other agents on l until Close, and returns at once. The
// peers of the connections that l hands out must have been verified. A store
// that serves nobody is its own process's alone.
func (s *Server) Serve(l net.Listener) {
	s.grpc = v3rpc.Server(s.etcd.Server, nil, nil, presence.ServerOptions(s.timeout)...)
	s.registry.Register(s.grpc)
	s.wg.Go(func() { s.grpc.Serve(presence.NewListener(l, s.timeout)) })
}

// Client returns a client that calls the server in this process. It is closed by
// Close.
func (s *Server) Client() *clientv3.Client { return s.client }

// Lost gives the id of each agent that went without saying goodbye.
func (s *Server) Lost() <-chan string { return s.registry.Lost() }

// Drain waits until all agents that came have said goodbye, or ctx ends.
func (s *Server) Drain(ctx context.Context) error { return s.registry.Empty(ctx) }

// Close removes the store's files, then ends the service. Whoever is still
// connected sees the connection break, and knows by that that nothing of the
// store is left.
func (s *Server) Close() error {
	s.client.Close() // its error is its context's, which this call itself ends
	s.etcd.Close()
	err := s.dir.remove()
	s.registry.Close()
	if s.grpc != nil {
		s.grpc.Stop()
	}
	s.wg.Wait()
	return err
}
