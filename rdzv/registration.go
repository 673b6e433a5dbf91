package rdzv

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"rdzv/rdzv/presence"
)

// An agent is alive as long as its key agent/ID exists, which it puts with its first member. Where
// an agent hosts the store, that one deletes the key when the presence stream of the other has
// ended (Leader.AgentEnded). In any other store the key has a lease, which its agent renews
// (lease.go). All else is the same, except for who leads: the host, or whoever joined first.

// registration is how the store knows that this agent is alive. It is the same in all attempts.
type registration struct {
	config  Config // as in the first attempt
	client  *clientv3.Client
	present context.Context // ends when the store does not know this agent any more
	vanish  context.CancelCauseFunc
	name    jobKeys
	run     runKeys          // in a store that no agent hosts unknown before it is found
	stream  *presence.Stream // nil in such a store, and in the process that hosts the store
	leads   atomic.Bool      // this agent has been elected

	// In a store that no agent hosts; otherwise zero.
	elects   bool
	lease    clientv3.LeaseID          // of the keys of this agent
	ttl      time.Duration             // of lease; a cluster may grant no short one
	jobLease clientv3.LeaseID          // of the keys of the job; all agents keep it alive
	value    string                    // of the key run, "" before it is known
	member   bool                      // of that run
	last     atomic.Pointer[Session]   // of the attempt that this agent has joined last; nil if none
	revoked  atomic.Pointer[time.Time] // when the lease was revoked the last time; nil: never
	doubts   chan struct{}             // the key of this agent was deleted
	before   []*mvccpb.KeyValue        // the last agent that joined before this one, if there was one
	current  context.Context           // of what keeping waits for
	cancel   context.CancelFunc
	keeping  sync.WaitGroup
}

func newRegistration(client *clientv3.Client, c Config) *registration {
	r := &registration{
		config: c, client: client, name: jobKeysOf(c.Prefix, c.Job), doubts: make(chan struct{}, 1),
	}
	r.run = r.name.only()
	r.present, r.vanish = context.WithCancelCause(context.Background())
	r.current, r.cancel = context.WithCancel(context.Background())
	return r
}

// register lets the store know of this agent: by a presence stream or, in a store without that
// service, by a lease. The process that hosts the store needs neither.
func (s *Session) register(ctx context.Context) (err error) {
	conn := s.client.ActiveConnection()
	if conn == nil {
		return nil
	}
	r := s.registration
	r.stream, err = s.openStream(ctx, conn)
	if status.Code(err) == codes.Unimplemented {
		err = s.registerByLease(ctx)
	}
	return err
}

// putAgent puts the key that exists from this agent's first attempt to its last.
func (s *Session) putAgent() clientv3.Op {
	m := s.config.Self.Identity() // for those who report its loss
	r := s.registration
	return clientv3.OpPut(r.run.agent(m.ID), encode(m), clientv3.WithLease(r.lease))
}

// leave ends the registration. Without a goodbye the others consider this agent lost at once.
func (r *registration) leave(goodbye bool) {
	r.cancel()
	r.keeping.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	switch {
	case r.stream != nil && goodbye:
		r.stream.Leave(ctx)
	case r.stream != nil:
		r.stream.Abandon()
	case r.elects:
		r.leaveRun(ctx, goodbye)
	}
}
