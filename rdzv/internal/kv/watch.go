package kv

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
)

// ErrLost means that the connection to the store, and so to the agent that hosts it, is lost.
var ErrLost = errors.New("lost the store")

// LostError is ErrLost with the reason.
type LostError struct{ Why error }

// Lost returns a *LostError; the reason is that of fmt.Errorf.
func Lost(format string, args ...any) error { return &LostError{fmt.Errorf(format, args...)} }

func (e *LostError) Error() string { return ErrLost.Error() + ": " + e.Why.Error() }

// Unwrap returns ErrLost and the reason.
func (e *LostError) Unwrap() []error { return []error{ErrLost, e.Why} }

// WatchError is why the store has refused or ended a watch: it has compacted what the watch would
// deliver, or the member of the cluster has no leader, or does not know the user since it was
// restarted. If the keys can be read again they can be watched again.
type WatchError struct{ Err error }

func (e WatchError) Error() string  { return e.Err.Error() }
func (e WatchError) Unwrap() error  { return e.Err }
func (WatchError) Code() codes.Code { return codes.Unavailable }

// Watch returns the events of all keys with a prefix, from now until the returned function
// is called; ctx bounds only the wait for the store's confirmation. etcd serves a watch
// that begins now at once, but one that begins in the past from a loop with a period of
// 100 ms. Therefore agents watch before they read anything. The watch ends when the member of a
// cluster that serves it has been without a leader for some seconds, because it is disconnected
// from the others.
func Watch(
	ctx context.Context, client *clientv3.Client, prefix string, opts ...clientv3.OpOption,
) (clientv3.WatchChan, context.CancelFunc, error) {
	watching, cancel := context.WithCancel(clientv3.WithRequireLeader(context.Background()))
	stop := context.AfterFunc(ctx, cancel)
	opts = append(opts, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	events := client.Watch(watching, prefix, opts...)
	var err error
	select {
	case first, open := <-events:
		if !open {
			err = ErrLost
		} else if !first.Created || first.Canceled {
			err = WatchError{fmt.Errorf("the store refused the watch: %w", first.Err())}
		}
	case <-watching.Done(): // because ctx has ended
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return events, cancel, nil
}

// ReadAndWatch returns all keys with a prefix, in the order in which they were changed, and what
// happens to them from then on. The error is ErrLost if the client has been closed: a store in this
// process is closed with its client, and then answers each call as if it would return.
func ReadAndWatch(ctx context.Context, client *clientv3.Client, prefix string) (
	found *clientv3.GetResponse, events clientv3.WatchChan, stop context.CancelFunc, err error,
) {
	found, err = Again(ctx, func() (*clientv3.GetResponse, error) {
		if client.Ctx().Err() != nil {
			return nil, ErrLost
		}
		found, err := client.Get(ctx, prefix, clientv3.WithPrefix(),
			clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend))
		if err == nil {
			next := clientv3.WithRev(found.Header.Revision + 1)
			events, stop, err = Watch(ctx, client, prefix, next)
		}
		return found, err
	})
	return found, events, stop, err
}
