package rdzv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	rules "rdzv/rdzv/internal/job"
	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/internal/registration"
)

// Leader leads a job: it watches the keys of all attempts, lets a state of package internal/job
// decide, and commits what that wants to write. The host of the store runs it on the store's own
// client, in addition to its own Session. Only Run's goroutine accesses its state.
type Leader struct {
	config  LeaderConfig
	client  *clientv3.Client
	run     keys.Run
	turn    registration.Turn
	state   *rules.State
	writes  []rules.Write  // that follow from what was in the store at the beginning
	notices []rules.Notice // of that, too
	events  clientv3.WatchChan
	cancel  context.CancelFunc // of the watch
}

// NewLeader returns the leader of a job for the process that hosts the store. It begins with what
// is in the store, and watches what happens from then on; Run must be called next. ctx bounds the
// call.
func NewLeader(ctx context.Context, client *clientv3.Client, c LeaderConfig) (*Leader, error) {
	if c.Job == "" || !c.Valid() {
		return nil, fmt.Errorf("cannot lead job %q of %d tasks, at least %d, with %d spares", c.Job,
			c.Tasks, c.MinTasks, c.Spares)
	}
	c.Complete()
	l := &Leader{config: c, client: client, run: keys.OfJob(DefaultPrefix, c.Job).Only()}
	over, err := l.begin(ctx)
	if err == nil && over {
		err = ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lead job %q: %w", c.Job, err)
	}
	return l, nil
}

// serve leads the job with what is in the store, until it is over.
func (l *Leader) serve(ctx context.Context) error {
	if over, err := l.begin(ctx); over || err != nil {
		return err
	}
	return l.Run(ctx)
}

// Run leads the job, one attempt after another, until all agents have settled and form no other
// attempt; then it returns nil. If the store ends the watch it begins again with what is in the
// store. When ctx ends it returns ctx's cause. After another error the job has no leader, and the
// host of the store should close that, so that all agents learn of it.
func (l *Leader) Run(ctx context.Context) error {
	for {
		err := l.lead(ctx)
		l.cancel()
		if _, interrupted := errors.AsType[kv.WatchError](err); !interrupted {
			return err
		}
		if err = registration.AwaitReturn(ctx, l.config.ReturnTime); err != nil {
			return err
		}
		before := l.state
		if over, err := l.begin(ctx); over || err != nil {
			return err
		}
		l.state.Continue(before)
	}
}

// begin reads what is in the store, and watches what happens from then on. It reports whether the
// job is over.
func (l *Leader) begin(ctx context.Context) (over bool, err error) {
	found, events, stop, err := kv.ReadAndWatch(ctx, l.client, l.run.Prefix)
	if err != nil {
		return false, err
	}
	snapshot := make([]rules.Change, len(found.Kvs))
	for i, pair := range found.Kvs {
		snapshot[i] = l.change(pair, true)
	}
	l.state, l.writes, l.notices = rules.Restore(time.Now(), l.config, rules.Store{
		Elected: l.turn.Elected(), Revoked: l.turn.Revoked, AllReturnTime: registration.AllReturnTime,
		LeaseTTL: l.turn.LeaseTTL, LeaseLag: leaseLag,
	}, snapshot)
	l.events, l.cancel = events, stop
	over = l.state.Over() && len(l.writes) == 0 // not by what is to be written now
	if over {
		stop()
	}
	return over, nil
}

// leaseLag is how much later than at the end of its lease an agent may be lost: etcd looks for such
// leases twice a second, and counts in seconds; and the agent may register again.
const leaseLag = 2*time.Second + registration.ReturnTime

func (l *Leader) change(pair *mvccpb.KeyValue, put bool) rules.Change {
	c := rules.Change{Key: strings.TrimPrefix(string(pair.Key), l.run.Prefix), Rev: pair.ModRevision}
	if put {
		c.Value = pair.Value
	}
	return c
}

// lead applies what happens and writes what follows, until the job is over.
func (l *Leader) lead(ctx context.Context) error {
	if err := l.follow(ctx, l.writes, l.notices); err != nil {
		return err
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for !l.state.Over() {
		timer.Stop()
		var wake <-chan time.Time
		if at := l.state.Wake(); !at.IsZero() {
			timer.Reset(time.Until(at))
			wake = timer.C
		}
		var err error
		select {
		case response, open := <-l.events:
			if !open {
				return ErrStoreLost
			}
			err = l.apply(ctx, response)
		case <-wake:
			writes, notices := l.state.Apply(time.Now())
			err = l.follow(ctx, writes, notices)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// apply handles what was written to the store, one revision after another.
func (l *Leader) apply(ctx context.Context, response clientv3.WatchResponse) error {
	if err := response.Err(); err != nil {
		return fmt.Errorf("cannot watch job %q: %w", l.config.Job, kv.WatchError{Err: err})
	}
	for events := response.Events; len(events) > 0 && !l.state.Over(); {
		var changes []rules.Change
		for rev := events[0].Kv.ModRevision; len(events) > 0 && events[0].Kv.ModRevision == rev; {
			changes = append(changes, l.change(events[0].Kv, events[0].Type == clientv3.EventTypePut))
			events = events[1:]
		}
		writes, notices := l.state.Apply(time.Now(), changes...)
		if err := l.follow(ctx, writes, notices); err != nil {
			return err
		}
	}
	return nil
}

// follow passes notices on, and writes.
func (l *Leader) follow(ctx context.Context, writes []rules.Write, notices []rules.Notice) error {
	for _, n := range notices {
		if old, is := n.(rules.Forgotten); is {
			_, _ = l.client.Compact(ctx, old.Rev) // fails if it has been done after a later question
		} else if l.config.Notify != nil {
			l.config.Notify(n)
		}
	}
	for _, w := range writes {
		if err := l.write(ctx, w); err != nil {
			return fmt.Errorf("cannot %s of job %q: %w", w.What, l.config.Job, err)
		}
	}
	return nil
}

// opsPerTxn is the maximum number of operations in a transaction of etcd.
const opsPerTxn = 128

// write commits a transaction, in parts if it is large.
func (l *Leader) write(ctx context.Context, w rules.Write) error {
	var conditions []clientv3.Cmp
	for _, c := range w.If {
		key := l.run.Prefix + c.Key
		switch {
		case c.Rev > 0:
			conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(key), "=", c.Rev))
		case c.Exists:
			conditions = append(conditions, kv.Present(key))
		default:
			conditions = append(conditions, kv.Absent(key))
		}
	}
	for ops := range slices.Chunk(w.Ops, opsPerTxn) {
		then := make([]clientv3.Op, len(ops))
		for i, op := range ops {
			then[i] = l.op(op)
		}
		done, err := l.turn.Commit(ctx, l.client, slices.Clip(conditions), then...)
		if err != nil || !done {
			return err
		}
	}
	return nil
}

func (l *Leader) op(op rules.Op) clientv3.Op {
	key := l.run.Prefix + op.Key
	switch {
	case op.Value != nil:
		return clientv3.OpPut(key, record.Encode(op.Value), clientv3.WithLease(l.turn.Lease))
	case op.End != "":
		return clientv3.OpDelete(key, clientv3.WithRange(l.run.Prefix+op.End))
	}
	return clientv3.OpDelete(key)
}
