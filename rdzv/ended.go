package rdzv

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/presence"
)

// AgentEnded records that an agent has disconnected from the store that this process hosts: with a
// goodbye if why is nil, otherwise it is lost. It may be called while Run runs.
func (l *Leader) AgentEnded(ctx context.Context, id string, why *presence.Loss) error {
	key := l.run.Agents().Of(id)
	for {
		found, err := kv.Get(ctx, l.client, key)
		if err != nil {
			return fmt.Errorf("cannot find agent %q, which has disconnected: %w", id, err)
		}
		var ops []clientv3.Op
		if why != nil {
			lost := record.Encode(record.Loss{Ended: why.Ended, After: why.After})
			ops = append(ops, clientv3.OpPut(l.run.Lost().Of(id), lost))
		}
		revision := int64(0)
		for _, pair := range found.Kvs {
			revision = pair.ModRevision
			ops = append(ops, clientv3.OpDelete(key))
			if m, err := record.Decode[Member](pair.Value); err == nil && m.OccupiesHost() {
				ops = append(ops, clientv3.OpDelete(l.run.Place(m.Node, m.NodeRank)))
			}
		}
		unchanged := clientv3.Compare(clientv3.ModRevision(key), "=", revision)
		answer, err := kv.Commit(ctx, l.client, []clientv3.Cmp{unchanged}, ops, nil)
		if err != nil {
			return fmt.Errorf("cannot write that agent %q has disconnected: %w", id, err)
		}
		if answer.Succeeded {
			return nil
		}
	}
}
