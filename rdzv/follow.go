package rdzv

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/internal/boottime"
)

// watchSignals watches the signals of this attempt until stopWatch. The function that it returns
// applies them.
func (s *Session) watchSignals(ctx context.Context) (follow func(), err error) {
	var stop context.CancelFunc
	events, err := again(ctx, func() (events clientv3.WatchChan, err error) {
		events, stop, err = watch(ctx, s.client, s.keys.signals())
		return events, err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot watch job %q: %w", s.config.Job, err)
	}
	watching, cancel := context.WithCancel(context.Background())
	context.AfterFunc(watching, stop)
	s.stopWatch = cancel
	return func() { s.follow(watching, events) }, nil
}

// follow applies the signals in order until ctx ends, or the store is closed in this process. If
// the store ends the watch it reads the signals again.
func (s *Session) follow(ctx context.Context, events clientv3.WatchChan) {
	seen, err := s.applySignals(events)
	for err != nil {
		if events, err = s.readSignals(ctx, &seen); err != nil {
			break
		}
		var last int64
		last, err = s.applySignals(events)
		seen = max(seen, last)
	}
	s.loseWatch(err)
}

// readSignals applies the signals later than seen and watches those to come.
func (s *Session) readSignals(ctx context.Context, seen *int64) (clientv3.WatchChan, error) {
	found, events, stop, err := readAndWatch(ctx, s.client, s.keys.signals())
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, stop)
	for _, kv := range found.Kvs {
		if kv.ModRevision > *seen {
			if err := s.applySignal(&clientv3.Event{Kv: kv}); err != nil {
				s.cancel(err)
			}
		}
	}
	*seen = found.Header.Revision
	return events, nil
}

// loseWatch ends the session, because err ended the watch; nil if the store gave no reason.
func (s *Session) loseWatch(err error) {
	why := ErrStoreLost
	if err != nil {
		why = fmt.Errorf("%w: cannot watch job %q: %v", ErrStoreLost, s.config.Job, err)
	}
	s.loseStore(why)
}

// applySignals applies the signals in order until the watch ends. It returns the revision of the
// last one, and why the store ended the watch.
func (s *Session) applySignals(events clientv3.WatchChan) (last int64, err error) {
	for response := range events {
		for _, e := range response.Events {
			last = e.Kv.ModRevision
			if err := s.applySignal(e); err != nil {
				s.cancel(err)
			}
		}
		err = cmp.Or(response.Err(), err)
	}
	return last, err
}

// applySignal applies a signal if it is the first one of its key, answers a question, and takes a
// signal to the process of an agent that all share.
func (s *Session) applySignal(e *clientv3.Event) error {
	key, value := string(e.Kv.Key), e.Kv.Value
	switch {
	case e.Type != clientv3.EventTypePut && key == s.keys.world():
		s.worldDeleted()
		return nil
	case e.Type != clientv3.EventTypePut:
		return nil
	case key == s.keys.world():
		return keepSignal(&s.world, key, value, func() { close(s.haveWorld) })
	case key == s.keys.exports():
		return keepSignal(&s.exports, key, value, func() {})
	case key == s.keys.start():
		return keepSignal(&s.start, key, value, func() { close(s.haveStart) })
	case key == s.keys.verdict():
		s.verdictAt.CompareAndSwap(nil, new(time.Now()))
		return keepSignal(&s.verdict, key, value, func() { s.cancel(s.Verdict()) })
	case key == s.keys.left(s.config.Self.ID):
		s.left()
	case key == s.keys.release():
		return keepSignal(&s.release, key, value, func() { close(s.released) })
	case key == s.keys.absent():
		return keepSignal(&s.absent, key, value, func() { close(s.haveAbsent) })
	case key == s.keys.init():
		s.takeProgress(value)
	case key == s.keys.look():
		return keepSignal(&s.look, key, value, func() { close(s.haveLook) })
	case key == s.keys.settled():
		return keepSignal(&s.settled, key, value, func() { close(s.haveSettled) })
	}
	if id, asked := strings.CutPrefix(key, s.keys.asks()); asked {
		s.wg.Go(func() { s.answer(id, value) })
	}
	if strings.HasPrefix(key, s.keys.shares()) {
		return s.sharing.take(value, e.Kv.ModRevision, s.config.Self.ID)
	}
	return nil
}

// keepSignal decodes a signal into its field of the session and calls then, if the field is empty.
func keepSignal[T any](field *atomic.Pointer[T], key string, value []byte, then func()) error {
	if field.Load() != nil {
		return nil
	}
	v, err := decode[T](value)
	if err != nil {
		return fmt.Errorf("cannot read %q: %w", key, err)
	}
	field.Store(&v)
	then()
	return nil
}

// Look returns a channel that is closed when the leader asks this agent which of its workers have
// not reached init_process_group, because rank 0 has. It answers with Reached, if there are any.
func (s *Session) Look() <-chan struct{} { return s.haveLook }

// Released returns a channel that is closed when the agent of rank 0 has called Release.
func (s *Session) Released() <-chan struct{} { return s.released }

// World waits until all agents have joined and returns the world. If the job ends before
// that, the error is the cause of the end of Context; it is [ErrWithdrawn] if this agent withdraws.
func (s *Session) World(ctx context.Context) (World, error) {
	select {
	case <-s.haveWorld:
	case <-s.ctx.Done():
	case <-ctx.Done():
		return World{}, context.Cause(ctx)
	}
	if s.ctx.Err() != nil && !s.late { // a late agent may wait for the next attempt
		return World{}, context.Cause(s.ctx)
	}
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	w, asked := *s.world.Load(), boottime.Now()
	seat, err := s.readSeat(ctx, w.MaxAgents > 0)
	if err != nil {
		return World{}, fmt.Errorf("cannot read this agent's seat: %w", err)
	}
	if seat.Full { // it joined at the same time as the last one
		s.cancel(ErrFull)
		return World{}, ErrFull
	}
	s.renew(w, asked)
	w.Exports, w.Seat, w.Peers = s.exports.Load(), seat.Seat, seat.Peers
	if !s.seat.CompareAndSwap(nil, &w.Seat) && s.seat.Load() == &withdrawnSeat {
		select { // how is for the leader to decide
		case <-s.ctx.Done():
			return World{}, context.Cause(s.ctx)
		case <-ctx.Done():
			return World{}, context.Cause(ctx)
		}
	}
	return w, nil
}

// readSeat reads this agent's seat, which was written before the world. If it joined later the
// leader answers, or it has none. The caller ends ctx.
func (s *Session) readSeat(ctx context.Context, answers bool) (seatValue, error) {
	key := s.keys.seat(s.config.Self.ID)
	found, err := get(ctx, s.client, key)
	switch {
	case err != nil:
		return seatValue{}, err
	case len(found.Kvs) > 0:
		return decode[seatValue](found.Kvs[0].Value)
	case !answers:
		return seatValue{Full: true}, nil
	}
	seat, err := awaitKey(ctx, s.client, key, exists)
	if err != nil {
		return seatValue{}, err
	}
	return decode[seatValue](seat.Value)
}
