package rdzv

import (
	"context"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/record"
)

// outcomes writes how the workers of this agent ended, and reads those of others.
type outcomes struct {
	store    *kv.Store
	keys     keys.Attempt
	self     Member
	lease    clientv3.LeaseID // of this agent
	jobLease clientv3.LeaseID
}

// put writes how all workers ended.
func (o *outcomes) put(ctx context.Context, all Outcome) error {
	err := o.store.Put(ctx, o.keys.Outcomes().Of(o.self.ID), record.Encode(all), o.jobLease)
	if err != nil {
		return o.store.Refused(ctx, fmt.Errorf("cannot write the outcome: %w", err))
	}
	return nil
}

// progress writes which workers have ended.
func (o *outcomes) progress(ctx context.Context, ended []Worker) error {
	value := record.Encode(record.NewOutcome(o.self.Host, ended))
	if err := o.store.Put(ctx, o.keys.Progress().Of(o.self.ID), value, o.lease); err != nil {
		return fmt.Errorf("cannot write which workers have ended: %w", err)
	}
	return nil
}

// withdraw writes that this agent, which runs no workers, is to leave. It stays until the leader,
// which may be lost at this moment, has decided: that the job goes on without it, or by a verdict.
func (o *outcomes) withdraw(ctx context.Context) error {
	idle := record.NewOutcome(o.self.Host, nil)
	idle.Withdrawn = true
	// Unless there is a verdict: if this is executed twice it must not replace the outcome that
	// follows.
	noVerdict := []clientv3.Cmp{kv.Absent(o.keys.Verdict())}
	put := clientv3.OpPut(o.keys.Outcomes().Of(o.self.ID), record.Encode(idle),
		clientv3.WithLease(o.jobLease))
	if _, err := o.store.Commit(ctx, noVerdict, []clientv3.Op{put}, nil); err != nil {
		return o.store.Refused(ctx, fmt.Errorf("cannot write that this agent is to leave: %w", err))
	}
	return nil
}

// read returns the failures of other workers than that of a verdict, in the order in which they
// were written, and the details of all workers. Only agents that report the job's end read all
// outcomes.
func (o *outcomes) read(ctx context.Context, v *Verdict) (
	failed []FailedWorker, details []Detail, err error,
) {
	all, err := o.store.Get(ctx, string(o.keys.Outcomes()), clientv3.WithPrefix(),
		clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the outcomes: %w", err)
	}
	for _, kv := range all.Kvs {
		o, err := record.Decode[Outcome](kv.Value)
		if err != nil {
			continue // it ended the job, see takeOutcome of package job
		}
		for _, w := range o.Workers {
			if w.FailedAlone() && w.Rank != v.Rank {
				failed = append(failed, FailedWorker{o.Host, w})
			}
		}
		details = append(details, o.Details...)
	}
	return failed, details, nil
}

// failed returns the detail of the worker that a verdict is about, if its agent has settled.
func (o *outcomes) failed(ctx context.Context, v *Verdict) ([]Detail, error) {
	one, err := o.store.Get(ctx, o.keys.Outcomes().Of(v.By))
	if err != nil {
		return nil, fmt.Errorf("cannot read the outcome of %s: %w", v.Host, err)
	}
	for _, kv := range one.Kvs {
		outcome, err := record.Decode[Outcome](kv.Value)
		if err != nil {
			continue // as in read
		}
		isOther := func(d Detail) bool { return d.Rank != v.Rank }
		return slices.DeleteFunc(outcome.Details, isOther), nil
	}
	return nil, nil
}
