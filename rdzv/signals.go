package rdzv

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// watch starts to follow the job's signals and returns once the store has
// confirmed it. A watch that begins now, before anything is read, is served at
// once; one that begins in the past waits for a loop of etcd's that runs every
// 100 ms.
func (s *Session) watch(ctx context.Context) error {
	watching, cancel := context.WithCancel(context.Background())
	s.watching = cancel
	events := s.client.Watch(watching, s.keys.signals(), clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	if err := created(ctx, events); err != nil {
		return err
	}
	s.wg.Go(func() { s.follow(events) })
	return nil
}

// created waits until the store has confirmed a watch.
func created(ctx context.Context, events clientv3.WatchChan) error {
	select {
	case first, open := <-events:
		if !open || !first.Created {
			return fmt.Errorf("the watch was refused: %w", first.Err())
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// follow takes in one signal after the other until the watch ends.
func (s *Session) follow(events clientv3.WatchChan) {
	for response := range events {
		for _, e := range response.Events {
			if err := s.signal(string(e.Kv.Key), e.Kv.Value); err != nil {
				s.cancel(err)
			}
		}
		if err := response.Err(); err != nil && s.ctx.Err() == nil {
			s.cancel(fmt.Errorf("cannot follow job %q: %w", s.config.Job, err))
		}
	}
}

func (s *Session) signal(key string, value []byte) (err error) {
	switch key {
	case s.keys.world():
		if s.world, err = decode[World](key, value); err == nil {
			close(s.started)
		}
	case s.keys.verdict():
		var v Verdict
		if v, err = decode[Verdict](key, value); err == nil {
			s.end(&v)
		}
	case s.keys.gone():
		if s.settlement, err = decode[settlement](key, value); err == nil {
			close(s.gone)
		}
	}
	return err
}

func (s *Session) end(v *Verdict) {
	s.mu.Lock()
	s.verdict = v
	s.mu.Unlock()
	s.cancel(v)
}

// Verdict is how the job ended, nil while it has not.
func (s *Session) Verdict() *Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verdict
}
