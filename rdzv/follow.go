package rdzv

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// watch starts to follow the job's signals and returns once the store has
// confirmed it.
func (s *Session) watch(ctx context.Context) error {
	events, cancel, err := watch(ctx, s.client, s.keys.signals())
	if err != nil {
		return err
	}
	s.stopWatch = cancel
	s.wg.Go(func() { s.follow(events) })
	return nil
}

// follow takes in one signal after the other until the watch ends, which it does
// by itself only with the store in this process, or if the store refuses it.
func (s *Session) follow(events clientv3.WatchChan) {
	why := ErrStoreLost
	for response := range events {
		for _, e := range response.Events {
			if err := s.applySignal(e); err != nil {
				s.cancel(err)
			}
		}
		if err := response.Err(); err != nil {
			why = fmt.Errorf("%w: cannot watch job %q: %v", ErrStoreLost, s.config.Job, err)
		}
	}
	s.loseStore(why)
	s.cancel(why)
}

// applySignal takes in a signal, each one only once.
func (s *Session) applySignal(e *clientv3.Event) (err error) {
	key, value := string(e.Kv.Key), e.Kv.Value
	switch {
	case e.Type != clientv3.EventTypePut:
		return nil
	case key == s.keys.world():
		err = keepSignal(s, &s.world, key, value, s.haveWorld)
	case key == s.keys.verdict():
		if err = keepSignal(s, &s.verdict, key, value, nil); err == nil {
			s.cancel(s.verdict)
		}
	case key == s.keys.settled():
		err = keepSignal(s, &s.settled, key, value, s.haveSettled)
	}
	return err
}

// keepSignal decodes a signal into its place in s, and closes known.
func keepSignal[T any](s *Session, place **T, key string, value []byte, known chan struct{}) error {
	if *place != nil {
		return nil
	}
	v, err := decode[T](value)
	if err != nil {
		return fmt.Errorf("cannot read %q: %w", key, err)
	}
	s.mu.Lock()
	*place = &v
	s.mu.Unlock()
	if known != nil {
		close(known)
	}
	return nil
}
