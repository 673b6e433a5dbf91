package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"rdzv/internal/procfs"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/activity"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/query"
	"rdzv/rdzv/masterport"
	"rdzv/rdzv/status"
)

// askStatus is the kind of a question to an agent, and of it to all agents of its job.
const askStatus = "status"

// askStatus is answered after an interval in which the CPU use is measured.
const (
	cpuInterval   = time.Second
	answerTimeout = cpuInterval + 2*time.Second
)

// Status asks the jobs of this user that have agents on this host, or those with one name, how they
// are. Each has 3 s to answer.
func Status(ctx context.Context, job string) (r status.Report, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout+2*time.Second)
	defer cancel()
	found, err := query.AskJobs(ctx, procfs.System, os.Geteuid(), job, query.Request{Kind: askStatus})
	if err != nil {
		return r, err
	}
	r = status.Report{Silent: found.Silent, Others: found.Others}
	for _, reply := range found.Jobs {
		var j status.Job
		if reply.Err == nil {
			reply.Err = json.Unmarshal(reply.Value, &j)
		}
		if reply.Err != nil {
			j = status.Job{Job: reply.Job, Text: reply.Err.Error()}
		}
		r.Jobs = append(r.Jobs, j)
	}
	return r, nil
}

// observed is what an agent shows of itself to other processes of its user and to other agents.
type observed struct {
	local  *Local
	server *query.Server // nil if there is none

	mu      sync.Mutex
	phase   status.Phase
	since   time.Time     // of phase
	session *rdzv.Session // nil before it has joined
	id      string        // "" before it has joined
	workers *workers      // nil before the world is agreed
}

// observe begins to answer other processes of this user, until close.
func (l *Local) observe(events *reporter) *observed {
	o := &observed{local: l}
	o.enter(status.Joining)
	if l.Config.Check == nil {
		var err error
		if o.server, err = query.Listen(o, os.Geteuid()); err != nil {
			events.diagnose(Verbose, err)
		}
	}
	return o
}

func (o *observed) close() {
	if o.server != nil {
		o.server.Close()
	}
}

func (o *observed) enter(phase status.Phase) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.phase, o.since = phase, time.Now()
}

func (o *observed) joined(id string, s *rdzv.Session) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.id, o.session = id, s
}

func (o *observed) runs(w *workers) {
	o.enter(status.Running)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.workers = w
}

// Job is the job of this agent.
func (o *observed) Job() query.Job {
	o.mu.Lock()
	defer o.mu.Unlock()
	return query.Job{Name: o.local.Job, ID: o.id}
}

// Answer answers another process of this user, with what all agents of the job have answered.
func (o *observed) Answer(ctx context.Context, r query.Request) ([]byte, []string, error) {
	answers, missing, err := o.ask(ctx, rdzv.Question{Kind: r.Kind, Arg: r.Arg})
	if err != nil {
		return nil, nil, err
	}
	var ids []string
	for _, a := range answers {
		ids = append(ids, a.ID)
	}
	for _, p := range missing {
		ids = append(ids, p.ID)
	}
	own, workers := o.own()
	job := status.Job{
		Job: o.local.Job, State: own.State, Seconds: own.Seconds, Text: own.Text,
		Agents: o.local.Agents, Ranks: []status.Rank{},
	}
	if workers != nil {
		job.WorldSize, job.Nodes = workers.world.Size, workers.world.Nodes
	}
	job.Add(answers, missing)
	value, err := json.Marshal(job)
	return value, ids, err
}

// ask asks all agents of the job, or this one alone before it has joined.
func (o *observed) ask(ctx context.Context, q rdzv.Question) ([]rdzv.Answer, []rdzv.Peer, error) {
	o.mu.Lock()
	session := o.session
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if session != nil {
		return session.Ask(ctx, q)
	}
	value, err := o.answer(ctx, q)
	self := rdzv.Peer{Host: host.Name(), PID: os.Getpid()}
	return []rdzv.Answer{{Peer: self, Value: value}}, nil, err
}

// answer is what this agent answers to an agent of its job.
func (o *observed) answer(ctx context.Context, q rdzv.Question) ([]byte, error) {
	if q.Kind != askStatus {
		return nil, fmt.Errorf("unknown question %q", q.Kind)
	}
	own, w := o.own()
	if w == nil {
		own.Ranks = []status.Rank{{Rank: rdzv.Unknown, State: status.Waiting}}
	} else {
		own.Ranks = w.ranks(ctx)
	}
	for i := range own.Ranks {
		own.Ranks[i].Host, own.Ranks[i].AgentPID = host.Name(), os.Getpid()
	}
	return json.Marshal(own)
}

// own is what this agent is doing.
func (o *observed) own() (status.Agent, *workers) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := status.Agent{State: o.phase, Seconds: time.Since(o.since).Seconds()}
	if o.phase == status.Ending {
		a.Text = context.Cause(o.session.Context()).Error()
	}
	return a, o.workers
}

// ranks is what the workers of this agent are doing.
func (w *workers) ranks(ctx context.Context) []status.Rank {
	ranks := make([]status.Rank, w.local.Workers)
	for i := range ranks {
		ranks[i] = status.Rank{Rank: w.world.Seat.Rank + i, State: status.Waiting}
	}
	w.ended.show(ranks)
	var pids []int
	var alive []*status.Rank
	for i := range ranks {
		if ranks[i].State == status.Alive {
			alive, pids = append(alive, &ranks[i]), append(pids, ranks[i].PID)
		}
	}
	used := activity.Watch(ctx, procfs.System, pids, cpuInterval)
	reached := masterport.Reached(procfs.System, w.world.MasterPort, pids)
	for i, r := range alive {
		r.CPU = &used[i].CPU
		if w.world.Size > 1 {
			r.Init = &reached[i]
		}
		if last := activity.LastOutput(r.PID); !last.IsZero() {
			r.Output = new(max(0, time.Since(last).Seconds()))
		}
		switch used[i].State {
		case 'T', 't':
			r.State = status.Stopped
		case 'D':
			r.State = status.Blocked
		}
	}
	w.ended.show(ranks) // what has ended meanwhile
	return ranks
}
