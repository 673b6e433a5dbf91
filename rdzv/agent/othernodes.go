package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rdzv/envmap"
	"rdzv/rdzv/agent/internal/query"
	"rdzv/rdzv/meet"
	"rdzv/rdzv/status"
)

// waiting is what the agents of a user on one host tell each other while they look for the other
// agents of their jobs, without a launcher. Two that run the same program in the same directory and
// wait for different numbers of nodes belong to different jobs, which was probably not intended.
type waiting struct {
	PID     int      `json:"pid"`
	Nodes   string   `json:"nodes"` // "3", or "2:4" from 2 to 4
	Program []string `json:"program"`
	Dir     string   `json:"dir"`
}

// waitingQuestion has as its argument what the agent that asks is waiting for.
const waitingQuestion = "waiting"

// askLimit is how long an agent waits for these answers before it looks for its own job. They take
// a millisecond; an agent that is frozen does not answer.
const askLimit = 100 * time.Millisecond

// waits is what this agent is waiting for; ok is false if it does not wait.
func (o *observed) waits() (w waiting, ok bool) {
	o.mu.Lock()
	joining := o.phase == status.Joining
	o.mu.Unlock()
	l := o.local
	w = waiting{PID: os.Getpid(), Nodes: fmt.Sprint(l.Agents), Program: l.Config.Program}
	w.Dir, _ = filepath.Abs(l.Config.Dir)
	if l.layout().Elastic() {
		w.Nodes = fmt.Sprintf("%d:%d", l.Config.MinNodes, l.Agents)
	}
	return w, joining && l.Placement.Launcher == envmap.None && l.Agents > 1
}

// askOthers tells the other agents of this host what this one waits for, and asks them the same.
func (o *observed) askOthers(ctx context.Context) {
	own, ok := o.waits()
	if !ok {
		return
	}
	arg, _ := json.Marshal(own) // cannot fail
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	request := query.Request{Kind: waitingQuestion, Arg: string(arg)}
	answers, err := query.AskAgents(ctx, o.proc, os.Geteuid(), request)
	if err != nil {
		o.events.diagnose(Verbose, err)
	}
	for _, answer := range answers {
		o.hear(answer)
	}
}

// answerWaiting is the answer to an agent that waits, null if this one does not.
func (o *observed) answerWaiting(arg string) []byte {
	o.hear([]byte(arg))
	own, ok := o.waits()
	if !ok {
		return []byte("null")
	}
	answer, _ := json.Marshal(own) // cannot fail
	return answer
}

// hear reports an agent that waits for another number of nodes than this one, once.
func (o *observed) hear(text []byte) {
	var other waiting
	own, ok := o.waits()
	if json.Unmarshal(text, &other) != nil || !ok || other.PID == own.PID ||
		other.Nodes == "" || other.Nodes == own.Nodes || other.Dir != own.Dir ||
		!slices.Equal(other.Program, own.Program) {
		return
	}
	n := meet.DifferentNodes{PID: other.PID, Nodes: other.Nodes, Own: own.Nodes}
	o.mu.Lock()
	known := slices.Contains(o.others, n)
	if !known {
		o.others = append(o.others, n)
	}
	o.mu.Unlock()
	if !known {
		o.events.send(DifferentNodes{n})
	}
}

// rejected are the agents that have been reported.
func (o *observed) rejected() (list []meet.Rejected) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range o.others {
		list = append(list, n)
	}
	return list
}

// lateHint is what to try about a job that not enough agents have joined.
func (m *membership) lateHint() string {
	var lines []string
	for _, n := range m.observed.rejected() {
		lines = append(lines, n.String())
	}
	if hint := m.local.layout().LateHint(); hint != "" {
		lines = append(lines, hint)
	}
	return strings.Join(lines, "\n")
}
