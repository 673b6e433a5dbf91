package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"rdzv/envmap"
	"rdzv/internal/procfs"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/inspect"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/program"
	"rdzv/rdzv/agent/internal/query"
	"rdzv/rdzv/agent/internal/reach"
	"rdzv/rdzv/agent/internal/stall"
	"rdzv/rdzv/agent/internal/taskfiles"
	"rdzv/rdzv/stacks"
	"rdzv/rdzv/status"
)

// observed answers questions of other processes of this user, and of other agents of the job.
type observed struct {
	local  *Local
	events *reporter
	proc   fs.FS         // /proc
	server *query.Server // nil if there is none
	// stopJob ends the job for its user; by says how.
	stopJob func(by string)

	mu      sync.Mutex
	phase   status.Phase
	since   time.Time      // of phase
	end     error          // in phase status.Ending: why
	session *rdzv.Session  // nil before this agent has joined
	id      string         // "" before this agent has joined
	workers *workers       // nil before the world is agreed
	silence *stall.Silence // of them; nil if it is not measured
}

// observe begins to answer, until close.
func observe(l *Local, events *reporter, stopJob func(by string)) *observed {
	proc := taskfiles.Proc{Files: procfs.System}
	for _, t := range l.Config.Tasks {
		proc.ReadBy = append(proc.ReadBy, t.ReadFile)
	}
	o := &observed{local: l, events: events, proc: proc, stopJob: stopJob}
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

// ends enters the last phase of an attempt, unless the agent is a member of another one already.
func (o *observed) ends(s *rdzv.Session, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.session == s {
		o.phase, o.since, o.end = status.Ending, time.Now(), cause
	}
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
	c := &o.local.Config
	return query.Job{
		Name: o.local.Job, Label: cmp.Or(c.Job, program.Name(c.Program)), ID: o.id,
		Only: isOnly(o.local),
	}
}

// Answer answers another process of this user with an inspect.Observation: what all agents that
// have joined answer, or this agent alone if it has not, or cannot ask the others any more.
func (o *observed) Answer(ctx context.Context, r query.Request) ([]byte, []string, error) {
	o.mu.Lock()
	session, id := o.session, o.id
	o.mu.Unlock()
	if r.Kind == inspect.StopQuestion {
		return o.stop(ctx, r.Arg)
	}
	q := rdzv.Question{
		Kind: r.Kind, Arg: r.Arg, Within: inspect.AnswerTimeout, Limit: rdzv.MaxAnswer,
	}
	var seen inspect.Observation
	if session != nil {
		var err error
		seen.Answers, seen.Missing, err = session.Ask(ctx, q)
		if busy, ok := errors.AsType[*rdzv.BusyError](err); ok {
			return nil, nil, busy
		}
		if err != nil {
			seen.Alone = err.Error()
		}
	}
	if session == nil || seen.Alone != "" {
		self := rdzv.Peer{ID: id, Host: host.Name(), PID: os.Getpid(), Tasks: len(o.local.all())}
		a := rdzv.Answer{Peer: self}
		limited, cancel := context.WithTimeout(ctx, inspect.AnswerTimeout)
		defer cancel()
		var err error
		if a.Value, err = o.answer(limited, q); err != nil {
			return nil, nil, err
		}
		seen.Answers = append(seen.Answers, a)
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

// answer answers an agent of the job, at most until ctx ends: reading what the kernel knows of a
// process that hangs in it can hang too.
func (o *observed) answer(ctx context.Context, q rdzv.Question) ([]byte, error) {
	return host.Await(ctx, func() {}, func() ([]byte, error) {
		switch q.Kind {
		case inspect.StatusQuestion:
			a := o.status(ctx)
			a.Fit(q.Limit)
			return json.Marshal(a)
		case inspect.StacksQuestion:
			n := o.stacks(ctx)
			n.Fit(q.Limit)
			return json.Marshal(n)
		case stall.Question:
			o.mu.Lock()
			silence := o.silence
			o.mu.Unlock()
			return json.Marshal(silence.Answer())
		case reach.Question:
			return json.Marshal(o.reached())
		case reach.Announcement:
			return json.Marshal(o.announce(q.Arg))
		}
		return nil, fmt.Errorf("unknown question %q", q.Kind)
	})
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
	n.Ranks, n.Addr = w.world.Size, w.addr
	for _, s := range w.tally.Running() {
		n.Workers = append(n.Workers, stacks.Worker{Rank: s.Rank, PID: s.PID})
	}
	w.noteInit(o.proc, n.Workers)
	at := stacks.Observer{
		Proc: o.proc, Took: inspect.Interval, MasterPort: w.world.MasterPort,
	}
	if path := w.setup.PySpy(); path != "" {
		at.PySpy = stacks.PySpy(path, w.base)
	}
	asked := w.askRAS(ctx)
	n.Workers = at.Observe(ctx, n.Workers)
	told := <-asked
	lag := told.Lag()
	n.Collectives, n.Behind, n.NCCL = lag.Text, lag.Behind, told.Text
	return n
}

// reached is which workers of this agent have not reached init_process_group.
func (o *observed) reached() (a reach.Answer) {
	o.mu.Lock()
	w := o.workers
	o.mu.Unlock()
	if w != nil {
		a = w.reach().Answer()
	}
	return a
}

// announce reports what rank 0's agent has found about init_process_group, if this agent leads.
func (o *observed) announce(text string) (reports bool) {
	o.mu.Lock()
	session := o.session
	o.mu.Unlock()
	var p rdzv.InitProgress
	reports = session != nil && session.Leads() && json.Unmarshal([]byte(text), &p) == nil
	if reports {
		o.events.send(InitProgress{p})
	}
	return reports
}

// measures notes what measures the silence of the present workers; nil is nothing.
func (o *observed) measures(s *stall.Silence) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.silence = s
}

// stop answers inspect.StopQuestion when the job has ended as far as this agent knows.
func (o *observed) stop(ctx context.Context, by string) ([]byte, []string, error) {
	ctx, cancel := context.WithTimeout(ctx, inspect.AnswerTimeout)
	defer cancel()
	o.mu.Lock()
	session, id, stop := o.session, o.id, o.stopJob
	o.mu.Unlock()
	stop(by)
	if session != nil {
		select {
		case <-session.Context().Done():
		case <-ctx.Done():
		}
		if session.Context().Err() == nil {
			return nil, nil, context.Cause(ctx)
		}
	}
	self := rdzv.Peer{ID: id, Host: host.Name(), PID: os.Getpid()}
	value, err := json.Marshal(inspect.Observation{Answers: []rdzv.Answer{{Peer: self}}})
	return value, []string{id}, err
}

// status answers inspect.StatusQuestion. It observes the workers, if any, for inspect.Interval.
func (o *observed) status(ctx context.Context) status.Agent {
	o.mu.Lock()
	w := o.workers
	a := status.Agent{
		State: o.phase, Seconds: time.Since(o.since).Seconds(), Joined: o.session != nil,
		Tasks: o.local.Agents, Launched: o.local.Placement.Launcher != envmap.None,
	}
	if o.phase == status.Ending {
		a.Ending = o.end.Error()
		if v, ok := errors.AsType[*rdzv.Verdict](o.end); ok && v.Kind == rdzv.Failed && v.Text != "" {
			a.Ending += ": " + v.Text
		}
	}
	o.mu.Unlock()
	if w != nil {
		asked := w.askRAS(ctx)
		a.WorldSize, a.Nodes, a.Ranks = w.world.Size, w.world.Nodes, w.status(ctx, o.proc)
		a.Collectives = (<-asked).Status()
		a.Attempt, a.MaxRestarts = w.world.Attempt, w.world.MaxRestarts
		if w.local.Config.LogDir != "" {
			a.LogDir, _ = filepath.Abs(filepath.Dir(w.local.Config.logs(w.world).File(0)))
		}
	}
	return a
}
