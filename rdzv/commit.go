package rdzv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// writeVerdict writes the verdict unless there is one, or a key exists that makes it
// wrong, and reports whether it has.
func writeVerdict(ctx context.Context, client *clientv3.Client, k keys, v Verdict, but ...string) (bool, error) {
	v.Text = clip(v.Text)
	conditions := []clientv3.Cmp{absent(k.verdict())}
	for _, key := range but {
		conditions = append(conditions, absent(key))
	}
	put := clientv3.OpPut(k.verdict(), encode(v))
	answer, err := commit(ctx, client, conditions, []clientv3.Op{put}, nil)
	if err != nil {
		return false, fmt.Errorf("cannot write the verdict %q: %w", v.Error(), err)
	}
	return answer.Succeeded, nil
}

// put writes one key.
func put(ctx context.Context, client *clientv3.Client, key, value string) error {
	_, err := commit(ctx, client, nil, []clientv3.Op{clientv3.OpPut(key, value)}, nil)
	return err
}

// commit writes a transaction, again where the connection broke under it: all
// that agents and leader write may be written twice. It ends with ctx, and its
// error is then ctx's cause.
func commit(ctx context.Context, client *clientv3.Client, ifs []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	return again(ctx, func() (*clientv3.TxnResponse, error) {
		return client.Txn(ctx).If(ifs...).Then(then...).Else(otherwise...).Commit()
	})
}

// again makes a call until it does not fail for want of a connection, or because
// the store has too much to do.
func again[T any](ctx context.Context, call func() (T, error)) (T, error) {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		answer, err := call()
		switch {
		case err == nil:
			return answer, nil
		case ctx.Err() != nil:
			return answer, context.Cause(ctx)
		case !unavailable(err) && !crowded(err):
			return answer, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return answer, context.Cause(ctx)
		}
	}
}

// unavailable tells whether a call failed because the server did not get it, or
// could not answer.
func unavailable(err error) bool {
	var coded interface{ Code() codes.Code } // etcd's own errors
	if errors.As(err, &coded) {
		return coded.Code() == codes.Unavailable
	}
	return status.Code(err) == codes.Unavailable || closing(err)
}

// closing tells the answer of an etcd that is being closed, for which it has no
// code of its own.
func closing(err error) bool {
	s, ok := status.FromError(err)
	return ok && s.Code() == codes.Unknown && strings.HasSuffix(s.Message(), "raft: stopped")
}

// crowded tells the answer of an etcd that has more than 5000 changes accepted and
// not made (etcd 3.7, etcdserver.maxGapBetweenApplyAndCommitIndex): it has not taken
// this one. Other calls that exhaust it are not worth another try.
func crowded(err error) bool {
	var coded interface{ Code() codes.Code }
	return errors.As(err, &coded) && coded.Code() == codes.ResourceExhausted && strings.HasSuffix(err.Error(), "too many requests")
}

// absent is the condition that makes a put create-only.
func absent(key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
}
