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
	found, err := r.store.Get(ctx, r.Keys.Latest())
	if err != nil {
		return false, err
	}
	k := r.Keys.Attempt(0)
	if len(found.Kvs) > 0 {
		v, err := record.Decode[record.Latest](found.Kvs[0].Value)
		if err != nil {
			return false, fmt.Errorf("cannot read %q: %w", r.Keys.Latest(), err)
		}
		k = r.Keys.Attempt(v.Attempt)
	}
	if found, err = r.store.Get(ctx, string(k.Signals()), clientv3.WithPrefix()); err != nil {
		return false, err
	}
	return over(k, valuesOf(found.Kvs)), nil
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
