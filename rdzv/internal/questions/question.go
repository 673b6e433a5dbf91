// Package questions lets an agent ask all agents of its job, and answer the others.
package questions

import (
	"cmp"
	"context"
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
}

// Answer is the reply of one agent. Value comes from its Config.Answer: at most MaxAnswer bytes.
type Answer struct {
	Peer
	Value []byte `json:"value,omitempty"`
	Error string `json:"error,omitempty"` // why there is no value; "" if there is one
}

// Peer is an agent of the job.
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

// MaxAnswer is the maximum size of an answer, in bytes. In the store it takes a third more.
const MaxAnswer = 320 << 10

// ask is the value of signal/ask/ID.
type ask struct {
	Question
	Within time.Duration `json:"within"` // how long the agent that asks waits for answers
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
	// Answers answers questions with at most MaxAnswer bytes; nil answers none.
	Answers func(context.Context, Question) ([]byte, error)

	Lease, JobLease clientv3.LeaseID // of what it answers, and asks

	// Compacts says that no others use the history of the store, and Agreed that all agents of the
	// job are known. Keep is how long a question stays in the history if not all have answered.
	Compacts bool
	Agreed   func() bool
	Keep     time.Duration

	asked history
}
