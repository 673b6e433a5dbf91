package rdzv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// errDeposed means that this agent's lease has expired, so that another agent leads.
var errDeposed = errors.New("this agent does not lead the job any more")

// candidate is an agent that leads the job, or will when all agents that joined before it are gone.
// One that is gone never returns.
type candidate struct {
	key      string // of the agent
	revision int64  // at which it was created
}

// stands is the condition that the agent is not gone.
func (c candidate) stands() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(c.key), "=", c.revision)
}

// elected tells whether this agent leads because it has been elected, and another one may lead
// next. Otherwise it hosts the store.
func (l *Leader) elected() bool { return l.term.candidate.key != "" }

// commitIf executes a transaction of the leader, and tells whether the conditions were true. It
// returns errDeposed, without any change, if this agent is not the leader any more.
func (l *Leader) commitIf(
	ctx context.Context, ifs []clientv3.Cmp, then ...clientv3.Op,
) (done bool, err error) {
	var otherwise []clientv3.Op
	if l.elected() {
		ifs = append(ifs, l.term.candidate.stands())
		otherwise = append(otherwise, clientv3.OpGet(l.term.candidate.key, clientv3.WithKeysOnly()))
	}
	answer, err := commit(ctx, l.client, ifs, then, otherwise)
	if err != nil || answer.Succeeded || !l.elected() {
		return err == nil && answer.Succeeded, err
	}
	found := answer.Responses[0].GetResponseRange().Kvs
	if len(found) == 0 || found[0].CreateRevision != l.term.candidate.revision {
		return false, errDeposed
	}
	return false, nil
}

// campaign leads the job as soon as this agent is the first one, until it leaves.
func (r *registration) campaign() {
	err := errDeposed
	for errors.Is(err, errDeposed) && r.current.Err() == nil { // it may have registered again
		var t term
		if t, err = r.awaitTurn(r.current); err == nil {
			r.leads.Store(true)
			l := &Leader{config: r.leaderConfig(), client: r.client, run: r.run, term: t}
			var over bool
			if over, err = l.begin(r.current); err == nil && !over {
				err = l.Run(r.current)
			}
			r.leads.Store(!errors.Is(err, errDeposed))
		}
	}
	if err != nil && r.current.Err() == nil {
		r.vanish(fmt.Errorf("%w: cannot lead job %q: %v", ErrStoreLost, r.config.Job, err))
	}
}

func (r *registration) leaderConfig() LeaderConfig {
	c := *r.config.Lead
	c.Job, c.Attempt = r.config.Job, 0
	c.SettleTimeout = cmp.Or(c.SettleTimeout, r.config.SettleTimeout)
	return c
}

// awaitTurn waits until all agents that joined before this one are gone. The last of them, if there
// was one, is known to this one as leader.
func (r *registration) awaitTurn(ctx context.Context) (t term, err error) {
	t.lease, t.leaseTTL, t.revoked = r.jobLease, r.config.PeerTimeout, r.revokedRecently
	t.candidate.key = r.run.agent(r.config.Self.ID)
	kvs := r.before
	for r.before = nil; ; {
		own, err := awaitKey(ctx, r.client, t.candidate.key, exists)
		if err != nil {
			return t, err
		}
		t.candidate.revision = own.CreateRevision
		if len(kvs) > 0 {
			m, _ := decode[Member](kvs[0].Value) // one that cannot be decoded ends the job
			m.ID = strings.TrimPrefix(string(kvs[0].Key), r.run.agents())
			t.known = []Member{m}
		}
		earlier, err := get(ctx, r.client, r.run.agents(),
			append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(t.candidate.revision-1))...)
		if err != nil || len(earlier.Kvs) == 0 {
			return t, err
		}
		kvs = earlier.Kvs
		last := kvs[0].CreateRevision
		_, err = awaitKey(ctx, r.client, string(kvs[0].Key), func(kv *mvccpb.KeyValue) bool {
			return kv == nil || kv.CreateRevision != last // it may have registered again
		})
		if err == nil {
			err = awaitReturn(ctx, r.config.Lead)
		}
		if err != nil {
			return t, err
		}
	}
}
