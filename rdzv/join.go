package rdzv

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/registration"
)

// Join makes this agent a member of the job. It registers in the store, starts to watch the job's
// signals, so that it misses none, and then publishes the member. If agents were lost in a job with
// restarts it joins the next attempt, in the place of one of them. In a job with a variable number
// of agents that runs it waits for the next attempt as a spare. ctx bounds only the call.
//
// It returns [ErrClosed], [ErrFull] or an *[OccupiedError] if the job in this store has no place
// for this agent, and [ErrStoreLost] if the store was lost meanwhile.
func Join(ctx context.Context, client *clientv3.Client, c Config) (*Session, error) {
	c.complete()
	if err := c.completeSelf(); err != nil {
		return nil, err
	}
	e := &entry{config: c}
	registering := c.registration()
	registering.Lead = func(ctx context.Context, turn registration.Turn) error {
		l := &Leader{
			config: *c.Lead, client: client, run: e.registration.Run.Keys, turn: turn,
		}
		return l.serve(ctx)
	}
	e.registration = registration.New(client, registering)
	err := e.registration.Register(ctx)
	if err == nil {
		err = e.join(ctx)
	}
	if err != nil {
		// After any other error the member may have been published.
		parting := registration.Nothing
		if noPlace(err) {
			parting = registration.Goodbye
		}
		e.close(err, parting)
		return nil, err
	}
	return e.session, nil
}

// join makes this agent a member of the first attempt that has a place for it, from this one on.
func (e *entry) join(ctx context.Context) error {
	for {
		refusal := e.checkRunReplaced(ctx, e.try(ctx))
		if refusal == nil {
			return nil
		}
		next, err := e.afterRefusal(ctx, refusal)
		if err != nil {
			return err
		}
		e.config.Attempt, e.late = next.number, next.late
		if err := e.config.completeSelf(); err != nil {
			return err
		}
		if e.session != nil {
			e.session.life.end(errLeft, e.session.signals)
			e.session = nil
		}
	}
}
