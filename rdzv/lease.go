package rdzv

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/internal/boottime"
	"rdzv/rdzv/internal/lease"
	"rdzv/rdzv/presence"
)

// registerByLease registers in a store that no agent hosts.
func (s *Session) registerByLease(ctx context.Context) (err error) {
	c, r := s.config, s.registration
	if err := c.checkLease(); err != nil {
		return err
	}
	granted := boottime.Now()
	if r.lease, r.ttl, err = s.grant(ctx, c.PeerTimeout); err != nil {
		return err
	}
	r.elects = true
	s.renewed(granted + c.PeerTimeout)
	r.keeping.Go(func() { s.keepLease() })
	return nil
}

func (c *Config) checkLease() error {
	switch {
	case c.Lead == nil || !c.Lead.valid():
		return fmt.Errorf("cannot join job %q: no agent hosts this store, and Config.Lead, "+
			"with which this agent can lead the job, has no agents or too many spares", c.Job)
	case c.Attempt != 0:
		return fmt.Errorf("cannot join attempt %d of job %q: no agent hosts this store, and the "+
			"attempt in such a store is that of the job", c.Attempt, c.Job)
	case c.PeerTimeout < presence.MinTimeout:
		return fmt.Errorf("cannot join job %q with peer timeout %v: the minimum is %v",
			c.Job, c.PeerTimeout, presence.MinTimeout)
	}
	return nil
}

// grant returns a new lease, and its TTL, which may be longer.
func (s *Session) grant(ctx context.Context, ttl time.Duration) (
	clientv3.LeaseID, time.Duration, error,
) {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	granted, err := again(ctx, func() (*clientv3.LeaseGrantResponse, error) {
		return s.client.Grant(ctx, lease.Seconds(ttl))
	})
	if err != nil {
		return 0, 0, fmt.Errorf("cannot get a lease for job %q: %w", s.config.Job, err)
	}
	return granted.ID, time.Duration(granted.TTL) * time.Second, nil
}

// keepLease keeps the agent's lease alive. Without it the others consider this agent lost. It asks
// for renewals as often as the peer timeout requires, also if the TTL is longer.
func (s *Session) keepLease() {
	r := s.registration
	ttl, limit := r.config.PeerTimeout, r.config.StoreTimeout
	var err error
	for err == nil {
		err = lease.Keep(r.current, r.client, r.lease, ttl, limit, func(sent time.Duration) {
			s.renewed(sent + ttl)
		}, r.doubts)
		if err == lease.ErrRevoked && r.current.Err() == nil {
			err = r.registerAgain()
		}
	}
	if r.current.Err() == nil {
		r.vanish(fmt.Errorf("%w: %v", ErrStoreLost, err))
	}
}

// keepJobLease keeps the job's lease alive. All agents do, because any of them may be the only one
// that is left.
func (r *registration) keepJobLease() {
	ttl := r.jobTTL() // the agent's own lease shows earlier that the store is silent
	limit := ttl + r.config.StoreTimeout
	err := lease.Keep(r.current, r.client, r.jobLease, ttl, limit, func(time.Duration) {}, nil)
	if r.current.Err() == nil {
		r.vanish(fmt.Errorf("%w: cannot keep job %q: %v", ErrStoreLost, r.config.Job, err))
	}
}
