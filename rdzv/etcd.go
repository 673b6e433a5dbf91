package rdzv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"rdzv/rdzv/presence"
)

// connectParams replaces gRPC's default, whose first delay of 1 s is longer than the start
// of a job. An attempt has a long timeout, because aborting it would add load to a store
// that serves thousands of agents.
var connectParams = grpc.ConnectParams{
	Backoff: backoff.Config{
		BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 200 * time.Millisecond,
	},
	MinConnectTimeout: 20 * time.Second,
}

// Dial returns a client of the store to which dial makes verified connections. It does not
// wait for a connection. Calls, watch and presence stream share one, which is closed if
// nothing was received from the store for peerTimeout.
func Dial(
	dial func(context.Context) (net.Conn, error), peerTimeout time.Duration,
) (*clientv3.Client, error) {
	dialLimited := func(ctx context.Context, _ string) (net.Conn, error) {
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		return presence.LimitSilence(conn, peerTimeout, peerTimeout+MaxLostGrace), nil
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://rdzv.invalid:1"}, // never resolved: dialLimited connects
		Logger:    zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(dialLimited),
			grpc.WithConnectParams(connectParams),
			grpc.WithNoProxy(),
			grpc.WithInitialWindowSize(presence.Window),
			grpc.WithInitialConnWindowSize(presence.Window),
			grpc.WithReadBufferSize(presence.Buffer),
			grpc.WithWriteBufferSize(presence.Buffer),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create a client of the store: %w", err)
	}
	return client, nil
}

// putVerdict is a transaction that puts a verdict unless there is one or a key in unless exists.
func (k keys) putVerdict(v Verdict, lease clientv3.LeaseID, unless ...string) (
	[]clientv3.Cmp, clientv3.Op,
) {
	v.Text = clip(v.Text)
	conditions := []clientv3.Cmp{absent(k.verdict())}
	for _, key := range unless {
		conditions = append(conditions, absent(key))
	}
	return conditions, clientv3.OpPut(k.verdict(), encode(v), clientv3.WithLease(lease))
}

// commit executes a transaction. It may execute it twice if the connection breaks: all
// writes of agents and leader are idempotent. When ctx ends it returns ctx's cause.
func commit(
	ctx context.Context, client *clientv3.Client, ifs []clientv3.Cmp, then, otherwise []clientv3.Op,
) (*clientv3.TxnResponse, error) {
	return again(ctx, func() (*clientv3.TxnResponse, error) {
		return client.Txn(ctx).If(ifs...).Then(then...).Else(otherwise...).Commit()
	})
}

// get reads keys.
func get(ctx context.Context, client *clientv3.Client, key string, opts ...clientv3.OpOption) (
	*clientv3.GetResponse, error,
) {
	return again(ctx, func() (*clientv3.GetResponse, error) { return client.Get(ctx, key, opts...) })
}

// again repeats a call until it succeeds or fails for another reason than a missing connection, an
// overloaded store, or a lease that is gone: its agent registers again or loses the store.
func again[T any](ctx context.Context, call func() (T, error)) (none T, err error) {
	if ctx.Err() != nil { // a store in this process would execute the call nevertheless
		return none, context.Cause(ctx)
	}
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		answer, err := call()
		switch {
		case err == nil:
			return answer, nil
		case ctx.Err() != nil:
			return answer, context.Cause(ctx)
		case !unavailable(err) && !overloaded(err) && err != rpctypes.ErrLeaseNotFound:
			return answer, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return answer, context.Cause(ctx)
		}
	}
}

// etcdError is one of etcd's own errors, which are not gRPC's.
type etcdError interface {
	error
	Code() codes.Code
}

// unavailable reports whether a call failed because the server did not receive it or could not
// answer. The answer of an etcd that is being closed has no code of its own.
func unavailable(err error) bool {
	if own, ok := errors.AsType[etcdError](err); ok {
		return own.Code() == codes.Unavailable
	}
	s, ok := status.FromError(err)
	closing := s.Code() == codes.Unknown && strings.HasSuffix(s.Message(), "raft: stopped")
	return ok && (s.Code() == codes.Unavailable || closing)
}

// overloaded reports whether etcd rejected a change because more than 5000 others are
// committed but not applied (etcd 3.7, etcdserver.maxGapBetweenApplyAndCommitIndex). Its
// other ResourceExhausted errors are permanent.
func overloaded(err error) bool {
	own, ok := errors.AsType[etcdError](err)
	return ok && own.Code() == codes.ResourceExhausted &&
		strings.HasSuffix(err.Error(), "too many requests")
}

// watchError is why the store has refused or ended a watch: it has compacted what the watch would
// deliver, or the member of the cluster has no leader, or does not know the user since it was
// restarted. If the keys can be read again they can be watched again.
type watchError struct{ error }

func (e watchError) Unwrap() error  { return e.error }
func (watchError) Code() codes.Code { return codes.Unavailable }

// absent is the condition that a key does not exist.
func absent(key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
}

// present is the condition that a key exists.
func present(key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), ">", 0)
}

// watch returns the events of all keys with a prefix, from now until the returned function
// is called; ctx bounds only the wait for the store's confirmation. etcd serves a watch
// that begins now at once, but one that begins in the past from a loop with a period of
// 100 ms. Therefore agents watch before they read anything. The watch ends when the member of a
// cluster that serves it has been without a leader for some seconds, because it is disconnected
// from the others.
func watch(
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
			err = ErrStoreLost
		} else if !first.Created || first.Canceled {
			err = watchError{fmt.Errorf("the store refused the watch: %w", first.Err())}
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

// readAndWatch returns all keys with a prefix, in the order in which they were changed, and what
// happens to them from then on.
func readAndWatch(ctx context.Context, client *clientv3.Client, prefix string) (
	found *clientv3.GetResponse, events clientv3.WatchChan, stop context.CancelFunc, err error,
) {
	found, err = again(ctx, func() (*clientv3.GetResponse, error) {
		found, err := client.Get(ctx, prefix, clientv3.WithPrefix(),
			clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend))
		if err == nil {
			next := clientv3.WithRev(found.Header.Revision + 1)
			events, stop, err = watch(ctx, client, prefix, next)
		}
		return found, err
	})
	return found, events, stop, err
}

// awaitKey waits until a key is as wanted, and returns it; nil is one that does not exist.
func awaitKey(
	ctx context.Context, client *clientv3.Client, key string, wanted func(*mvccpb.KeyValue) bool,
) (kv *mvccpb.KeyValue, err error) {
	for {
		found, events, stop, err := readAndWatch(ctx, client, key)
		if err != nil {
			return nil, err
		}
		kv = nil
		for _, other := range found.Kvs { // with this prefix
			if string(other.Key) == key {
				kv = other
			}
		}
		release := context.AfterFunc(ctx, stop)
		for response, open := (clientv3.WatchResponse{}), true; open && !wanted(kv); {
			response, open = <-events
			for _, e := range response.Events {
				if string(e.Kv.Key) == key && !wanted(kv) {
					kv = unlessDeleted(e)
				}
			}
		}
		release()
		stop()
		if wanted(kv) {
			return kv, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

func unlessDeleted(e *clientv3.Event) *mvccpb.KeyValue {
	if e.Type == clientv3.EventTypeDelete {
		return nil
	}
	return e.Kv
}

func exists(kv *mvccpb.KeyValue) bool { return kv != nil }
func isGone(kv *mvccpb.KeyValue) bool { return kv == nil }
