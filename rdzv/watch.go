package rdzv

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// watch returns the events of all keys with a prefix, from now until the returned function
// is called; ctx bounds only the wait for the store's confirmation. etcd serves a watch
// that begins now at once, but one that begins in the past from a loop with a period of
// 100 ms. Therefore agents watch before they read anything.
func watch(ctx context.Context, client *clientv3.Client, prefix string) (
	clientv3.WatchChan, context.CancelFunc, error,
) {
	watching, cancel := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, cancel)
	events := client.Watch(watching, prefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	err := created(watching, events)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return events, cancel, nil
}

// created waits until the store has confirmed a watch.
func created(ctx context.Context, events clientv3.WatchChan) error {
	select {
	case first, open := <-events:
		switch {
		case !open:
			return ErrStoreLost
		case !first.Created:
			return fmt.Errorf("the store refused the watch: %w", first.Err())
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
