package kv

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Absent is the condition that a key does not exist.
func Absent(key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
}

// Present is the condition that a key exists.
func Present(key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), ">", 0)
}

// Commit executes a transaction. It may execute it twice if the connection breaks: all
// writes of agents and leader are idempotent. When ctx ends it returns ctx's cause.
func Commit(
	ctx context.Context, client *clientv3.Client, ifs []clientv3.Cmp, then, otherwise []clientv3.Op,
) (*clientv3.TxnResponse, error) {
	return Again(ctx, func() (*clientv3.TxnResponse, error) {
		return client.Txn(ctx).If(ifs...).Then(then...).Else(otherwise...).Commit()
	})
}

// Get reads keys.
func Get(ctx context.Context, client *clientv3.Client, key string, opts ...clientv3.OpOption) (
	*clientv3.GetResponse, error,
) {
	return Again(ctx, func() (*clientv3.GetResponse, error) { return client.Get(ctx, key, opts...) })
}

// Again repeats a call until it succeeds or fails for another reason than a missing connection, an
// overloaded store, or a lease that is gone: its agent registers again or loses the store.
func Again[T any](ctx context.Context, call func() (T, error)) (none T, err error) {
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
		case !Unavailable(err) && !overloaded(err) && err != rpctypes.ErrLeaseNotFound:
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

// Unavailable reports whether a call failed because the server did not receive it or could not
// answer. The answer of an etcd that is being closed has no code of its own.
func Unavailable(err error) bool {
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
