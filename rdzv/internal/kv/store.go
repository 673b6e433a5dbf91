// Package kv calls an etcd: transactions, reads and watches, which are repeated while the store
// cannot answer.
package kv

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Store is the job's store, as long as this agent has it. Then the calls in progress end, and later
// ones fail, with the reason as their error.
type Store struct {
	Client *clientv3.Client
	ctx    context.Context
	lose   context.CancelCauseFunc
}

// NewStore is a store that this agent has until ctx ends.
func NewStore(ctx context.Context, client *clientv3.Client) *Store {
	s := &Store{Client: client}
	s.ctx, s.lose = context.WithCancelCause(ctx)
	return s
}

// Context ends when the store is lost.
func (s *Store) Context() context.Context { return s.ctx }

// Lose ends the use of the store for a reason.
func (s *Store) Lose(why error) { s.lose(why) }

// Until returns a context that also ends when the store is lost.
func (s *Store) Until(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	lost := func() { cancel(context.Cause(s.ctx)) }
	if s.ctx.Err() != nil {
		lost() // AfterFunc would be too late: nothing is written in an attempt that has been left
	}
	stop := context.AfterFunc(s.ctx, lost)
	return ctx, func() { stop(); cancel(nil) }
}

// Commit is Commit with this store.
func (s *Store) Commit(
	ctx context.Context, ifs []clientv3.Cmp, then, otherwise []clientv3.Op,
) (*clientv3.TxnResponse, error) {
	ctx, done := s.Until(ctx)
	defer done()
	return Commit(ctx, s.Client, ifs, then, otherwise)
}

// Get is Get with this store.
func (s *Store) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (
	*clientv3.GetResponse, error,
) {
	ctx, done := s.Until(ctx)
	defer done()
	return Get(ctx, s.Client, key, opts...)
}

// Put puts a value that exists as long as a lease; 0 is none.
func (s *Store) Put(ctx context.Context, key, value string, lease clientv3.LeaseID) error {
	put := clientv3.OpPut(key, value, clientv3.WithLease(lease))
	_, err := s.Commit(ctx, nil, []clientv3.Op{put}, nil)
	return err
}

// Refused returns why something was not written without which the job does not end. Unless ctx has
// ended the store has refused it, for example because it is full: then it is of no use any more.
func (s *Store) Refused(ctx context.Context, err error) error {
	if ctx.Err() == nil && s.ctx.Err() == nil {
		s.Lose(Lost("%v", err))
	}
	return err
}
