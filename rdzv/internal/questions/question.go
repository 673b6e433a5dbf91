// Package questions lets an agent ask all agents of its job, and answer the others.
//
// The answers go through the store, which must always have room for how the job ends. Therefore
// one question is answered at a time, and its answers have a size that depends on their number.
package questions

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/record"
)

// Question is sent to all agents of a job by one of them, see Session.Ask of package rdzv. Only
// Config.Answer, which answers it, interprets Kind and Arg.
type Question struct {
	Kind string `json:"kind"`
	Arg  string `json:"arg,omitempty"`
	// Within is how long the agents may take to answer; 0 is 2 s.
	Within time.Duration `json:"within"`
	// Limit is how many bytes the answer may have. Ask sets it.
	Limit int `json:"limit"`
}

// Answer is the reply of one agent. Value comes from its Config.Answer.
type Answer struct {
	Peer
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"` // why there is no value; "" if there is one
}

// Peer is an agent of the job. If the store has not told in time who an agent is, only its ID is
// known.
type Peer struct {
	ID    string      `json:"id"`
	Host  string      `json:"host"`
	PID   int         `json:"pid"`
	Tasks int         `json:"tasks"` // number of its tasks
	Seat  record.Seat `json:"seat"`  // zero before the world is agreed
}

func (p Peer) compare(q Peer) int {
	return cmp.Or(cmp.Compare(p.Seat.First(), q.Seat.First()), cmp.Compare(p.Host, q.Host),
		cmp.Compare(p.PID, q.PID))
}

// MaxAnswer is the maximum size of an answer as the store has it, in bytes, and MaxAnswers that of
// all answers to a question: a quarter of what the store of a job can hold.
const (
	MaxAnswer  = 320 << 10
	MaxAnswers = 64 << 20
)

// ask is the value of signal/ask.
type ask struct {
	Question
	ID    string           `json:"id"`
	Asker Peer             `json:"asker"`
	Lease clientv3.LeaseID `json:"lease"` // of the answers
}

// DefaultKeep is after what time every agent has read a question.
const DefaultKeep = time.Minute

// Agent is this agent in one attempt, as it asks and answers.
type Agent struct {
	Store *kv.Store
	Keys  keys.Attempt
	Self  Peer // without its seat
	// Seat returns that of this agent, zero before the world is agreed.
	Seat func() record.Seat
	// Answers answers questions with JSON of at most Question.Limit bytes; nil answers none.
	Answers func(context.Context, Question) ([]byte, error)

	// Compacts says that no others use the history of the store, and Agreed that all agents of the
	// job are known. Keep is how long a question stays in the history if not all have answered.
	Compacts bool
	Agreed   func() bool
	Keep     time.Duration

	asked history
}
