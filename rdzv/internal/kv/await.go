package kv

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Await waits until a key is as wanted, and returns it; nil is one that does not exist.
func Await(
	ctx context.Context, client *clientv3.Client, key string, wanted func(*mvccpb.KeyValue) bool,
) (kv *mvccpb.KeyValue, err error) {
	for {
		found, events, stop, err := ReadAndWatch(ctx, client, key)
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

func Exists(kv *mvccpb.KeyValue) bool { return kv != nil }
func IsGone(kv *mvccpb.KeyValue) bool { return kv == nil }
