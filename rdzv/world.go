package rdzv

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/internal/boottime"
	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/record"
)

// World waits until all agents have joined and returns the world. If the job ends before
// that, the error is the cause of the end of Context; it is [ErrWithdrawn] if this agent withdraws.
func (s *Session) World(ctx context.Context) (World, error) {
	select {
	case <-s.signals.World.Done():
	case <-s.life.ctx.Done():
	case <-ctx.Done():
		return World{}, context.Cause(ctx)
	}
	if s.life.ctx.Err() != nil && !s.late { // a late agent may wait for the next attempt
		return World{}, context.Cause(s.life.ctx)
	}
	ctx, done := s.life.store.Until(ctx)
	defer done()
	w, asked := *s.signals.World.Load(), boottime.Now()
	seat, err := readSeat(ctx, s.life.store, s.keys, s.config.Self.ID, w.MaxTasks > 0)
	if err != nil {
		return World{}, fmt.Errorf("cannot read this agent's seat: %w", err)
	}
	if seat.Full { // it joined at the same time as the last one
		s.life.cancel(ErrFull)
		return World{}, ErrFull
	}
	s.registration.Renew(w, asked)
	w.Exports, w.Seat = s.signals.Exports.Load(), seat.Seat
	if !s.seat.CompareAndSwap(nil, &w.Seat) && s.seat.Load() == &withdrawnSeat {
		select { // how is for the leader to decide
		case <-s.life.ctx.Done():
			return World{}, context.Cause(s.life.ctx)
		case <-ctx.Done():
			return World{}, context.Cause(ctx)
		}
	}
	return w, nil
}

// readSeat reads an agent's seat, which was written before the world. If it joined later the leader
// answers, or it has none. Its member is gone if the next attempt runs without it.
func readSeat(ctx context.Context, store *kv.Store, k keys.Attempt, id string, answers bool) (
	seat record.SeatValue, err error,
) {
	key := k.Seats().Of(id)
	found, err := store.Commit(ctx, nil, []clientv3.Op{
		clientv3.OpGet(key), clientv3.OpGet(k.Members().Of(id), clientv3.WithCountOnly()),
	}, nil)
	if err != nil {
		return seat, err
	}
	if kvs := found.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		return record.Decode[record.SeatValue](kvs[0].Value)
	}
	if !answers || found.Responses[1].GetResponseRange().Count == 0 {
		return record.SeatValue{Full: true}, nil
	}
	written, err := kv.Await(ctx, store.Client, key, kv.Exists)
	if err != nil {
		return seat, err
	}
	return record.Decode[record.SeatValue](written.Value)
}

// survivesLoss tells whether a job in an attempt may go on without one of its agents, as far as an
// agent knows that has a world, or none. The leader decides.
func survivesLoss(attempt int, w *World) bool {
	if w == nil { // between two attempts
		return attempt > 0
	}
	return w.MayRestart() && (len(w.Spares) > 0 || w.MaxTasks > 0 || w.Replaceable)
}
