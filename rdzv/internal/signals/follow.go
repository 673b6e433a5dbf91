package signals

import (
	"cmp"
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/kv"
)

// Watch watches the signals, until Close. Follow, which must be called next, applies them.
func (s *Signals) Watch(ctx context.Context) (follow func(), err error) {
	var stop context.CancelFunc
	events, err := kv.Again(ctx, func() (events clientv3.WatchChan, err error) {
		events, stop, err = kv.Watch(ctx, s.store.Client, string(s.keys.Signals()))
		return events, err
	})
	if err != nil {
		return nil, err
	}
	watching, cancel := context.WithCancel(context.Background())
	context.AfterFunc(watching, stop)
	s.stop = cancel
	return func() { s.running.Go(func() { s.follow(watching, events) }) }, nil
}

// ReadOnce applies the signals that are there.
func (s *Signals) ReadOnce(ctx context.Context) error {
	found, err := s.store.Get(ctx, string(s.keys.Signals()), clientv3.WithPrefix())
	if err != nil {
		return err
	}
	for _, kv := range found.Kvs {
		if err := s.apply(&clientv3.Event{Type: clientv3.EventTypePut, Kv: kv}); err != nil {
			return err
		}
	}
	return nil
}

// follow applies the signals in order until ctx ends, or the store is closed in this process. If
// the store ends the watch it reads the signals again.
func (s *Signals) follow(ctx context.Context, events clientv3.WatchChan) {
	seen, err := s.applyAll(events)
	for err != nil {
		if events, err = s.readAgain(ctx, &seen); err != nil {
			break
		}
		var last int64
		last, err = s.applyAll(events)
		seen = max(seen, last)
	}
	s.handlers.Lost(err)
}

// applyAll applies the signals in order until the watch ends. It returns the revision of the last
// one, and why the store ended the watch.
func (s *Signals) applyAll(events clientv3.WatchChan) (last int64, err error) {
	for response := range events {
		for _, e := range response.Events {
			last = e.Kv.ModRevision
			if err := s.apply(e); err != nil {
				s.handlers.Invalid(err)
			}
		}
		err = cmp.Or(response.Err(), err)
	}
	return last, err
}

// readAgain applies the signals later than seen and watches those to come.
func (s *Signals) readAgain(ctx context.Context, seen *int64) (clientv3.WatchChan, error) {
	found, events, stop, err := kv.ReadAndWatch(ctx, s.store.Client, string(s.keys.Signals()))
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, stop)
	for _, kv := range found.Kvs {
		if kv.ModRevision > *seen {
			if err := s.apply(&clientv3.Event{Kv: kv}); err != nil {
				s.handlers.Invalid(err)
			}
		}
	}
	*seen = found.Header.Revision
	return events, nil
}
