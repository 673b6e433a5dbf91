package rdzv

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/record"
)

// An etcd whose database is full (NOSPACE) accepts no values, but deletions. A job whose workers
// have all succeeded ends nevertheless: an agent whose workers have succeeded deletes its member
// instead of putting its outcome, and the leader deletes the world instead of putting that all
// have settled. The end of a lease deletes other keys too, by which it is distinguished.

func full(err error) bool { return errors.Is(err, rpctypes.ErrNoSpace) }

// settleInFull tells the leader that all workers have succeeded of this agent.
func (s *Session) settleInFull(ctx context.Context) error {
	remove := clientv3.OpDelete(s.keys.member(s.config.Self.ID))
	_, err := commit(ctx, s.client, nil, []clientv3.Op{remove}, nil)
	return err
}

// worldDeleted handles that the leader has ended the job, unless the run or this attempt is being
// removed.
func (s *Session) worldDeleted() {
	r := s.registration
	if !r.elects {
		return
	}
	answer, err := commit(s.answering, s.client, r.runs(), nil, nil)
	if err != nil || !answer.Succeeded {
		return
	}
	_ = keepSignal(&s.verdict, s.keys.verdict(), []byte(encode(record.VerdictOf(Done))),
		func() { s.cancel(s.Verdict()) })
	_ = keepSignal(&s.settled, s.keys.settled(), []byte(encode(settled{})),
		func() { close(s.haveSettled) })
}
