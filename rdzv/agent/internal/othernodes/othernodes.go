// Package othernodes lets the agents of a user on one host tell each other what they wait for while
// they look for the other agents of their jobs, without a launcher. Two that run the same program
// in the same directory and wait for different numbers of nodes belong to different jobs, which was
// probably not intended.
package othernodes

import (
	"context"
	"encoding/json"
	"io/fs"
	"slices"
	"sync"
	"time"

	"rdzv/rdzv/agent/internal/query"
	"rdzv/rdzv/meet"
)

// Waiting describes, as JSON, an agent that looks for the other agents of its job. Two with the
// same program and directory and different Nodes are reported.
type Waiting struct {
	PID     int      `json:"pid"`
	Nodes   string   `json:"nodes"` // "3", or "2:4" from 2 to 4
	Program []string `json:"program"`
	Dir     string   `json:"dir"`
}

// Question has as its argument what the agent that asks is waiting for.
const Question = "waiting"

// Agents are the other agents of this user on this host.
type Agents struct {
	Own    func() (w Waiting, ok bool) // what this agent waits for; ok is false if it does not
	Report func(meet.DifferentNodes)   // an agent that waits for another number of nodes

	mu    sync.Mutex
	known []meet.DifferentNodes
}

// askLimit is how long an agent waits for the answers before it looks for its own job. They take a
// millisecond; an agent that is frozen does not answer.
const askLimit = 100 * time.Millisecond

// Ask tells them what this agent waits for, and asks them the same.
func (a *Agents) Ask(ctx context.Context, proc fs.FS, uid int) error {
	own, ok := a.Own()
	if !ok {
		return nil
	}
	arg, _ := json.Marshal(own) // cannot fail
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	answers, err := query.AskAgents(ctx, proc, uid, query.Request{Kind: Question, Arg: string(arg)})
	for _, answer := range answers {
		a.hear(answer)
	}
	return err
}

// Answer is the answer to an agent that waits, null if this one does not.
func (a *Agents) Answer(arg string) []byte {
	a.hear([]byte(arg))
	own, ok := a.Own()
	if !ok {
		return []byte("null")
	}
	answer, _ := json.Marshal(own) // cannot fail
	return answer
}

// hear reports an agent that waits for another number of nodes than this one, once.
func (a *Agents) hear(text []byte) {
	var other Waiting
	own, ok := a.Own()
	if json.Unmarshal(text, &other) != nil || !ok || other.PID == own.PID ||
		other.Nodes == "" || other.Nodes == own.Nodes || other.Dir != own.Dir ||
		!slices.Equal(other.Program, own.Program) {
		return
	}
	n := meet.DifferentNodes{PID: other.PID, Nodes: other.Nodes, Own: own.Nodes}
	a.mu.Lock()
	known := slices.Contains(a.known, n)
	if !known {
		a.known = append(a.known, n)
	}
	a.mu.Unlock()
	if !known {
		a.Report(n)
	}
}

// Rejected are the agents that have been reported.
func (a *Agents) Rejected() (list []meet.Rejected) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.known {
		list = append(list, n)
	}
	return list
}
