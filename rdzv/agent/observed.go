package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
	"rdzv/rdzv/stacks"
	"rdzv/rdzv/status"
)

// The kinds of questions: what an agent and its workers are doing, and where its workers are.
const (
	askStatus = "status"
	askStacks = "stacks"
)

// cpuInterval is how long agents measure CPU use, and answerTimeout how long they may take to
// answer a question.
const (
	cpuInterval   = time.Second
	answerTimeout = cpuInterval + 2*time.Second
)

// Status asks the jobs of this user that have agents on this host, or those with one name, how they
// are. It takes 5 s at most.
func Status(ctx context.Context, job string) (status.Report, error) {
	found, err := askJobs(ctx, job, rdzv.Question{Kind: askStatus})
	if err != nil {
		return status.Report{}, err
	}
	r := reportOn(found, func(job string, o observation, r *status.Report) {
		r.Add(status.Of(job, o.Answers, o.Missing))
	})
	return r, nil
}

// reportOn is a report of what was found, to which add adds the jobs that have answered.
func reportOn(
	found query.Found, add func(job string, o observation, r *status.Report),
) status.Report {
	r := status.Report{
		Jobs: []status.Job{}, Names: found.Names, Silent: found.Silent, Others: found.Others,
	}
	if len(found.Names) == 0 {
		r.Elsewhere = query.Elsewhere(procfs.System, os.Geteuid())
	}
	for _, reply := range found.Jobs {
		var o observation
		if err := cmp.Or(reply.Err, json.Unmarshal(reply.Value, &o)); err != nil {
			r.Jobs = append(r.Jobs, status.Job{Job: reply.Job, Text: err.Error()})
		} else {
			add(reply.Job, o, &r)
		}
	}
	return r
}

// Stacks asks the same jobs as Status where their workers are. The second result is what else is
// known of them, without their ranks. It takes 5 s at most.
func Stacks(ctx context.Context, job string) ([]stacks.Report, status.Report, error) {
	found, err := askJobs(ctx, job, rdzv.Question{Kind: askStacks})
	if err != nil {
		return nil, status.Report{}, err
	}
	var reports []stacks.Report
	r := reportOn(found, func(job string, o observation, r *status.Report) {
		r.Add(status.Job{Job: job, State: status.Running})
		at, n := o.stacks(job), len(reports)
		if at.Ranks > 0 || n == 0 || reports[n-1].Job != job { // not one more that has not joined
			reports = append(reports, at)
		}
	})
	return reports, r, nil
}

// stacks is the report on the workers of a job.
func (o observation) stacks(job string) stacks.Report {
	var nodes []stacks.Node
	for _, a := range o.Answers {
		n := stacks.Node{Host: a.Host, Problem: a.Error}
		if a.Error == "" && json.Unmarshal(a.Value, &n) != nil {
			n.Problem = "its answer cannot be read"
		}
		nodes = append(nodes, n)
	}
	for _, p := range o.Missing {
		problem := fmt.Sprintf("the agent (pid %d) has not answered", p.PID)
		nodes = append(nodes, stacks.Node{Host: p.Host, Problem: problem})
	}
	return stacks.Of(job, nodes)
}

// askJobs asks all agents of each job of this user that has an agent on this host, or of those with
// one name. The values of the replies are observations.
func askJobs(ctx context.Context, job string, q rdzv.Question) (query.Found, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout+2*time.Second)
	defer cancel()
	r := query.Request{Kind: q.Kind, Arg: q.Arg}
	return query.AskJobs(ctx, procfs.System, os.Geteuid(), job, r)
}

// observation is what the agents of a job have answered to a question.
type observation struct {
	Answers []rdzv.Answer `json:"answers"`
	Missing []rdzv.Peer   `json:"missing,omitempty"` // have not answered
}

// observed answers questions of other processes of this user, and of other agents of the job.
type observed struct {
	local  *Local
	server *query.Server // nil if there is none

	mu      sync.Mutex
	phase   status.Phase
	since   time.Time     // of phase
	session *rdzv.Session // nil before this agent has joined
	id      string        // "" before this agent has joined
	workers *workers      // nil before the world is agreed
}

// observe begins to answer, until close.
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

// Answer answers another process of this user with an observation: what all agents that have joined
// answer, or this agent alone if it has not, or cannot ask the others any more.
func (o *observed) Answer(ctx context.Context, r query.Request) ([]byte, []string, error) {
	o.mu.Lock()
	session, id := o.session, o.id
	o.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	q := rdzv.Question{Kind: r.Kind, Arg: r.Arg}
	var seen observation
	var err error
	if session != nil {
		seen.Answers, seen.Missing, err = session.Ask(limited, q)
	}
	if session == nil || err != nil && ctx.Err() == nil {
		a := rdzv.Answer{Peer: rdzv.Peer{ID: id, Host: host.Name(), PID: os.Getpid()}}
		a.Value, err = o.answer(ctx, q)
		seen.Answers = append(seen.Answers, a)
	}
	if err != nil {
		return nil, nil, err
	}
	var ids []string
	for _, a := range seen.Answers {
		ids = append(ids, a.ID)
	}
	for _, p := range seen.Missing {
		ids = append(ids, p.ID)
	}
	value, err := json.Marshal(seen)
	return value, ids, err
}

// answer answers an agent of the job.
func (o *observed) answer(ctx context.Context, q rdzv.Question) ([]byte, error) {
	switch q.Kind {
	case askStatus:
		return json.Marshal(o.status(ctx))
	case askStacks:
		return json.Marshal(o.stacks(ctx))
	}
	return nil, fmt.Errorf("unknown question %q", q.Kind)
}

// stacks is where the workers of this agent are.
func (o *observed) stacks(ctx context.Context) stacks.Node {
	o.mu.Lock()
	w := o.workers
	o.mu.Unlock()
	n := stacks.Node{Host: host.Name()}
	if w == nil {
		return n
	}
	n.Ranks, n.Addr = w.world.Size, w.conn.addr
	for _, s := range w.ended.running() {
		n.Workers = append(n.Workers, stacks.Worker{Rank: s.Rank, PID: s.PID})
	}
	at := stacks.Observer{
		Proc: procfs.System, Took: cpuInterval, MasterPort: w.world.MasterPort,
	}
	if path := w.local.pySpy(); path != "" {
		at.PySpy = stacks.PySpy(path, w.local.Config.Environ)
	}
	n.Workers = at.Observe(ctx, n.Workers)
	return n
}

// status is what this agent and its workers are doing.
func (o *observed) status(ctx context.Context) status.Agent {
	o.mu.Lock()
	w := o.workers
	a := status.Agent{
		State: o.phase, Seconds: time.Since(o.since).Seconds(), Joined: o.session != nil,
		Agents: o.local.Agents,
	}
	if o.phase == status.Ending {
		cause := context.Cause(o.session.Context())
		a.Ending = cause.Error()
		if v, ok := errors.AsType[*rdzv.Verdict](cause); ok && v.Kind == rdzv.Failed && v.Text != "" {
			a.Ending += ": " + v.Text
		}
	}
	o.mu.Unlock()
	if w != nil {
		a.WorldSize, a.Nodes, a.Ranks = w.world.Size, w.world.Nodes, w.status(ctx)
	}
	return a
}

// status is what the workers of this agent are doing.
func (w *workers) status(ctx context.Context) []status.Rank {
	ranks := make([]status.Rank, w.local.Workers)
	for i := range ranks {
		ranks[i] = status.Rank{
			Rank: w.world.Seat.Rank + i, Host: host.Name(), AgentPID: os.Getpid(),
			State: status.Waiting,
		}
	}
	w.ended.show(ranks)
	var alive []*status.Rank
	var pids []int
	for i, r := range ranks {
		if r.State == status.Alive {
			alive, pids = append(alive, &ranks[i]), append(pids, r.PID)
		}
	}
	used := activity.Watch(ctx, procfs.System, pids, cpuInterval)
	reached := masterport.Reached(procfs.System, w.world.MasterPort, pids)
	for i, r := range alive {
		r.CPU = &used[i].CPU
		if w.world.Size > 1 {
			r.Init = &reached[i]
		}
		switch used[i].State {
		case 'T', 't':
			r.State = status.Stopped
		case 'D':
			r.State = status.Blocked
		}
	}
	w.ended.show(ranks) // which have ended meanwhile
	for i := range ranks {
		if last := w.outputs[i].Time(); !last.IsZero() {
			ranks[i].Output = new(time.Since(last).Seconds())
		}
	}
	return ranks
}
