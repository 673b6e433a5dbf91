package registration

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/record"
)

// Over tells whether the run has a verdict after which there is no other attempt. While the leader
// has yet to decide on that, it is not.
func (r *Run) Over(ctx context.Context) (bool, error) {
	k, signals, err := r.latest(ctx)
	return err == nil && over(k, signals), err
}

// latest returns the latest attempt, and its signals.
func (r *Run) latest(ctx context.Context) (
	k keys.Attempt, signals map[string][]byte, err error,
) {
	number := 0
	found, err := r.store.Get(ctx, r.Keys.Latest())
	if err == nil && len(found.Kvs) > 0 {
		var v record.Latest
		if v, err = record.Decode[record.Latest](found.Kvs[0].Value); err != nil {
			err = fmt.Errorf("cannot read %q: %w", r.Keys.Latest(), err)
		}
		number = v.Attempt
	}
	if err != nil {
		return k, nil, err
	}
	k = r.Keys.Attempt(number)
	if found, err = r.store.Get(ctx, string(k.Signals()), clientv3.WithPrefix()); err != nil {
		return k, nil, err
	}
	return k, valuesOf(found.Kvs), nil
}

// over is Over, by the signals of the latest attempt.
func over(k keys.Attempt, signals map[string][]byte) bool {
	verdict, ended := signals[k.Verdict()]
	if !ended {
		return false
	}
	if value, decided := signals[k.Settled()]; decided {
		all, err := record.Decode[record.Settled](value)
		return err != nil || all.Restart == nil
	}
	v, err := record.Decode[record.Verdict](verdict)
	w, _ := record.Decode[record.World](signals[k.World()]) // without one no worker has failed
	return err != nil || !v.MayRestart() || !w.MayRestart()
}

func valuesOf(kvs []*mvccpb.KeyValue) map[string][]byte {
	values := make(map[string][]byte, len(kvs))
	for _, kv := range kvs {
		values[string(kv.Key)] = kv.Value
	}
	return values
}
