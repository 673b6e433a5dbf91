package questions

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/record"
)

// Reply answers a question of an agent, until ctx ends. Nothing waits for the answer.
func (a *Agent) Reply(ctx context.Context, id string, value []byte) {
	question, err := record.Decode[ask](value)
	if err != nil {
		return // the agent that asks reports that this one has not answered
	}
	ctx, cancel := context.WithTimeout(ctx, question.Within)
	defer cancel()
	answer := Answer{Peer: a.Self}
	answer.Seat = a.Seat()
	answer.Value, err = a.answer(ctx, question.Question)
	if err != nil {
		answer.Value, answer.Error = nil, record.Clip(err.Error())
	}
	// Unless it comes too late. If the store is lost that is reported by itself.
	put := clientv3.OpPut(a.Keys.Answers(id).Of(a.Self.ID), record.Encode(answer),
		clientv3.WithLease(a.Lease))
	asked := []clientv3.Cmp{kv.Present(a.Keys.Questions().Of(id))}
	_, _ = a.Store.Commit(ctx, asked, []clientv3.Op{put}, nil)
}

func (a *Agent) answer(ctx context.Context, q Question) ([]byte, error) {
	if a.Answers == nil {
		return nil, errors.New("this agent answers no questions")
	}
	value, err := a.Answers(ctx, q)
	if err == nil && len(value) > MaxAnswer {
		err = fmt.Errorf("an answer of %d bytes (at most %d allowed)", len(value), MaxAnswer)
	}
	return value, err
}
