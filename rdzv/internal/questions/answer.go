package questions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/record"
)

// Reply answers a question of an agent, until ctx ends. Nothing waits for the answer.
func (a *Agent) Reply(ctx context.Context, value []byte) {
	question, err := record.Decode[ask](value)
	if err != nil {
		return // the agent that asks reports that this one has not answered
	}
	ctx, cancel := context.WithTimeout(ctx, question.Within)
	defer cancel()
	// Unless it comes too late. If the store is lost that is reported by itself.
	put := clientv3.OpPut(a.Keys.Answers(question.ID).Of(a.Self.ID), a.reply(ctx, question),
		clientv3.WithLease(question.Lease))
	asked := []clientv3.Cmp{kv.Present(a.Keys.Question())}
	_, _ = a.Store.Commit(ctx, asked, []clientv3.Op{put}, nil)
}

// reply is what the store gets: at most question.Limit bytes, or why there is no answer.
func (a *Agent) reply(ctx context.Context, question ask) string {
	answer := Answer{Peer: a.Self}
	answer.Seat = a.Seat()
	q, most := question.Question, question.Limit
	q.Limit = max(0, most-len(record.Encode(answer))-len(`,"value":`))
	value, err := a.answer(ctx, q)
	if err == nil {
		answer.Value = value
		text := record.Encode(answer)
		if len(text) <= most {
			return text
		}
		err = fmt.Errorf("its answer has %d bytes; at most %d are allowed in this job", len(text), most)
	}
	answer.Value, answer.Error = nil, record.Clip(err.Error())
	return record.Encode(answer)
}

func (a *Agent) answer(ctx context.Context, q Question) ([]byte, error) {
	if a.Answers == nil {
		return nil, errors.New("this agent answers no questions")
	}
	value, err := a.Answers(ctx, q)
	if err == nil && !json.Valid(value) {
		err = errors.New("its answer is no JSON")
	}
	return value, err
}
