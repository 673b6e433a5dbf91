package registration

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/internal/record"
)

// A run without agents may still have workers: agents that are disconnected end them only when the
// store has not answered for some time. Therefore another run of the same name begins when all
// agents have settled, or when that time has passed, which is part of the key run. It counts from
// when this agent first sees none of the run: the lease of an agent that was disconnected ends
// later than the store has answered it the last time.

// leasedMargin is how much longer than their lease and its grace workers may take to die.
const leasedMargin = time.Second

// vacancyCheck is how often a run without agents is read.
const vacancyCheck = time.Second

// AwaitVacant waits until no workers of the run that Find has returned can run any more, so that
// Find may replace it, or until that is not necessary: another run has begun, or the agents of this
// one go on with it. Agents that are left have the time within to end the job, which has lost one.
// waits is called if workers may run, with the longest time that this takes, and whether there are
// agents, which end them.
func (r *Run) AwaitVacant(
	ctx context.Context, within time.Duration, waits func(atMost time.Duration, agents bool),
) error {
	began, since := time.Now(), time.Time{} // since then the run is over or without agents
	for {
		s, err := r.vacancy(ctx)
		switch {
		case err != nil || s.replaced:
			return err
		case s.over || s.agents == 0:
			told := !since.IsZero()
			if !told {
				since = time.Now()
			}
			if time.Since(since) >= s.outlives {
				return nil
			}
			if !told {
				waits(s.outlives, s.agents > 0)
			}
		case time.Since(began) >= within:
			r.Again()
			return nil
		default:
			since = time.Time{}
		}
		select {
		case <-time.After(vacancyCheck):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// vacancy is what is left of a run.
type vacancy struct {
	replaced bool // another run has begun, or none
	over     bool // see Over
	agents   int
	outlives time.Duration // how long workers may run from now on
}

// vacancy reads what is left of the run.
func (r *Run) vacancy(ctx context.Context) (v vacancy, err error) {
	found, err := r.store.Commit(ctx, r.Present(), []clientv3.Op{
		clientv3.OpGet(string(r.Keys.Agents()), clientv3.WithPrefix(), clientv3.WithCountOnly()),
	}, nil)
	if err != nil || !found.Succeeded {
		return vacancy{replaced: err == nil}, err
	}
	v.agents = int(found.Responses[0].GetResponseRange().Count)
	present, _ := record.DecodeAny[run]([]byte(r.value))
	k, signals, err := r.latest(ctx)
	if _, is := errors.AsType[*protocol.VersionError](err); is {
		v.outlives = time.Duration(present.Final)
		return v, nil
	}
	v.over, v.outlives = over(k, signals), present.outlives(k, signals)
	return v, err
}

// outlives is how long workers of the run may run after the store has answered an agent the last
// time, by the signals of the latest attempt, which is k.
func (r *run) outlives(k keys.Attempt, signals map[string][]byte) time.Duration {
	world, agreed := signals[k.World()]
	settled, decided := signals[k.Settled()]
	if decided {
		all, err := record.Decode[record.Settled](settled)
		decided = err == nil && all.Restart == nil && all.Unsettled == ""
	}
	w, err := record.Decode[record.World](world)
	switch {
	case decided, !agreed && k == k.Run.Attempt(0):
		return 0
	case !agreed, err == nil && w.MayRestart() && !over(k, signals):
		return time.Duration(r.Leased) // without a world: those of agents that were lost before
	}
	return time.Duration(r.Final)
}
