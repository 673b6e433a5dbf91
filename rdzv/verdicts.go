package rdzv

import (
	"context"
	"fmt"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/record"
)

// verdicts writes how an attempt ends.
type verdicts struct {
	store    *kv.Store
	keys     keys.Attempt
	self     Member
	lease    clientv3.LeaseID // of the job
	byCaller atomic.Bool      // see Session.ByCaller
}

// about returns a verdict about this agent.
func (v *verdicts) about(kind Kind) Verdict {
	about := record.VerdictOf(kind)
	about.By, about.Host, about.PID = v.self.ID, v.self.Host, v.self.PID
	return about
}

// signalled returns the verdict that this agent has received a signal. delivered says that its
// workers have received it too.
func (v *verdicts) signalled(signal int, delivered bool) Verdict {
	ended := v.about(Ended)
	ended.Signal, ended.Shared, ended.Caller = Signal(signal), delivered, v.byCaller.Load()
	return ended
}

// put writes a verdict unless there is one.
func (v *verdicts) put(ctx context.Context, verdict Verdict) error {
	verdict.Text = record.Clip(verdict.Text)
	absent := []clientv3.Cmp{kv.Absent(v.keys.Verdict())}
	put := clientv3.OpPut(v.keys.Verdict(), record.Encode(verdict), clientv3.WithLease(v.lease))
	_, err := v.store.Commit(ctx, absent, []clientv3.Op{put}, nil)
	if err != nil {
		err = fmt.Errorf("cannot write the verdict %q: %w", verdict.Error(), err)
		return v.store.Refused(ctx, err)
	}
	return nil
}
