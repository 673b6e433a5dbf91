package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-multierror"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/collectives"
	"rdzv/rdzv/agent/internal/ending"
	"rdzv/rdzv/agent/internal/overlap"
	"rdzv/rdzv/agent/internal/postmortem"
	"rdzv/rdzv/agent/internal/recorders"
	"rdzv/rdzv/agent/internal/stall"
	"rdzv/rdzv/agent/internal/tally"
	"rdzv/wrap"
)

// workers are the workers of this agent in one attempt.
type workers struct {
	local   *Local
	events  *reporter
	session *rdzv.Session
	world   rdzv.World
	id      string // of this agent
	addr    string // of this agent, on its connection to the store
	dir     string // runtime directory, "" if there is none
	in      *interrupts
	hosting bool // this agent hosts the store
	lease   overlap.Lease
	// awaitReported waits until the end of the attempt has been reported, if it has ended. settle
	// reports that all workers have ended, and measures what measures their silence; nil is nothing.
	awaitReported func()
	settle        func([]rdzv.Worker)
	measures      func(*stall.Silence)

	output  workerOutput
	endings []ending.Ending
	before  []int // kills by the kernel's out-of-memory killer before they began, of each task
	tally   tally.Tally
	mpi     atomic.Bool
	settled func() // to be called when all agents have settled
	// failedTree is called when the workers of a task, of which the first one has this index, could
	// not be run, or not be ended.
	failedTree func(first int, err error)
	left       []int // processes that could not be killed

	// Goroutines that answer questions may use these two when they are prepared.
	prepared  atomic.Bool
	ras       *collectives.Service // NCCL's, in the workers
	recorders *recorders.Set       // torch's, in the workers
}

// workers are those of the attempt whose world is agreed, or failed to be.
func (m *membership) workers(in *interrupts) *workers {
	l := m.local
	w := &workers{
		local: l, events: m.events, session: m.session, world: m.world, id: m.self.ID,
		addr: m.conn.addr, dir: m.conn.dir, in: in, awaitReported: m.awaitReported,
		settle: func(list []rdzv.Worker) {
			if m.vanishes(in) {
				m.conn.leaveStore()
				return
			}
			m.settle(list)
		},
		hosting:    m.conn.hosting(),
		failedTree: func(first int, err error) { m.cannotRun(in, first, err) },
		measures:   m.observed.measures, output: outputOf(l, m.events, m.world),
		endings: make([]ending.Ending, l.all().workers()), settled: func() {},
	}
	w.lease = overlap.Lease{
		Lease: &m.lease, World: m.world, ID: m.self.ID, Grace: l.Config.Grace,
	}
	w.tally.Number, w.tally.Settle, w.tally.Progress = l.all().workers(), w.allEnded, w.someEnded
	return w
}

// run runs the workers until the job has ended and nothing of them is left.
func (w *workers) run() error {
	defer func() { ending.Remove(w.endings) }()
	w.output.checkShown()
	w.recorders = w.output.open()
	defer w.output.close()
	defer w.holdRAS()()
	defer w.recorders.RemoveFIFOs()
	trees, err := w.trees()
	if err != nil {
		w.failedTree(0, err)
		return err
	}
	w.prepared.Store(true)
	for _, t := range w.local.all() {
		w.before = append(w.before, postmortem.OOMKills(t.Config.Root))
	}
	defer w.tally.Close()
	defer w.holdBack(trees)()
	defer w.watchInit()()
	defer w.watchStall()()
	w.in.begin()
	err = runTrees(w.stopping(), w.local, trees, w.failedTree)
	w.in.runs.Store(false)
	return err
}

// runTrees runs the workers of all tasks. failed is called as soon as it has failed for a task: the
// others may go on, until the job ends.
func runTrees(
	ctx context.Context, l *Local, trees []wrap.Tree, failed func(first int, err error),
) error {
	errs := make([]error, len(trees))
	run := func(i, first int, run func(context.Context, wrap.Tree) ([]wrap.Result, error)) {
		if _, errs[i] = run(ctx, trees[i]); errs[i] != nil {
			failed(first, errs[i])
		}
	}
	var wg sync.WaitGroup
	first := l.Workers
	for i, t := range l.tasks {
		index := first // of its first worker
		wg.Go(func() { run(i+1, index, t.task.Run) })
		first += t.Workers
	}
	run(0, 0, wrap.Run)
	wg.Wait()
	isNil := func(err error) bool { return err == nil }
	switch errs = slices.DeleteFunc(errs, isNil); len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0] // a caller compares it
	}
	return multierror.Append(nil, errs...)
}

// trees are the workers of each task.
func (w *workers) trees() ([]wrap.Tree, error) {
	var trees []wrap.Tree
	first := 0
	for i, t := range w.local.all() {
		tree, err := w.tree(t, first)
		if err != nil {
			return nil, err
		}
		tree.Signals = w.in.tasks[i].Forward
		trees = append(trees, tree)
		first += t.Workers
	}
	return trees, nil
}

// tree is the workers of a task; first is the index of its first one among those of the agent.
func (w *workers) tree(task *Local, first int) (wrap.Tree, error) {
	c, seat := task.Config, w.world.Seat
	frozen := c.lostAfter() // the other agents do not wait longer
	if w.local.Agents == 1 {
		frozen = 0
	}
	t := wrap.Tree{
		Grace: c.Grace, Linger: true, JobControl: true, FrozenLimit: frozen,
		Source: w.in.source, Signalled: w.in.signalled,
		DumpStacks: w.in.dump, Kill: w.in.kill,
		Started: func(i, pid int) {
			i += first
			started := tally.Process{Rank: seat.RankOf(i), LocalRank: seat.LocalRankOf(i), PID: pid}
			w.tally.Start(started)
			w.events.send(WorkerStarted(started))
		},
		Dumping: func(list []wrap.Dump) { w.dumping(task, first, list) },
		Ended:   func(i int, r wrap.Result) { w.workerEnded(first+i, r) },
		LogLost: func(i int, reason error, bytes int64) { w.output.logLost(first+i, reason, bytes) },
		OutputLost: func(i int, stream string, reason error, bytes int64) {
			w.output.lost(first+i, stream, reason, bytes)
		},
	}
	w.lease.Limit(&t)
	identities := task.identities()
	for i := range task.Workers {
		id := identities.Of(w.world, first+i, w.addr)
		id.RASAddr = w.ras.Addr()
		id.Recorder.Dump, id.Recorder.Pipe = w.recorders.Paths()
		bound := task.numa.Bind(&id, c.Device, i, task.Workers)
		environ, err := w.environ(task, first+i, id)
		if err != nil {
			return t, err
		}
		w.noteBinding(task, id, bound)
		worker := wrap.Worker{
			Path: task.Path, Dir: task.setup.WorkerDir(), Args: c.Program, Env: environ,
			Bind: binding(bound),
		}
		w.output.set(&worker, first+i)
		if i == 0 {
			worker.Stdin = c.Stdin
		}
		t.Workers = append(t.Workers, worker)
	}
	return t, nil
}

// holdRAS reserves an address for NCCL's RAS service. It ends with release.
func (w *workers) holdRAS() (release func()) {
	var err error
	if w.ras, err = collectives.Hold(w.local.env, w.world); err != nil {
		w.events.diagnose(Verbose, err) // they share NCCL's own with others
	}
	return w.ras.Release
}

// environ is the environment of the i-th worker.
func (w *workers) environ(task *Local, i int, id envmap.Identity) ([]string, error) {
	file, err := postmortem.NameErrorFile(w.dir)
	if err != nil {
		w.events.diagnose(Verbose, err) // the worker then has none
	} else {
		w.endings[i].File, id.ErrorFile = file, file
	}
	c := &task.Config
	environ := c.Environ
	if dir := task.setup.WorkerDir(); dir != "" {
		environ = envmap.Changes{Set: []envmap.KV{{Name: "PWD", Value: dir}}}.Apply(environ)
	}
	if _, set := task.env["PYTHONUNBUFFERED"]; !set && c.piped() {
		unbuffered := []envmap.KV{{Name: "PYTHONUNBUFFERED", Value: "1"}}
		environ = envmap.Changes{Set: unbuffered}.Apply(environ)
	}
	environ, notes, err := envmap.Torch(environ, id, c.torchOptions(task.OwnTasks))
	if i == 0 {
		w.ras.Note(environ)
	}
	w.recorders.Note(envmap.ParseEnv(environ), id.Rank)
	for _, note := range notes {
		w.events.send(EnvironmentNote{Text: note})
	}
	return environ, err
}

// stopping is a context for wrap.Run that ends with the job.
func (w *workers) stopping() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	job := w.session.Context()
	context.AfterFunc(w.session.Presence(), w.lease.Revoke) // others may have begun the next attempt
	context.AfterFunc(job, func() {
		w.mpi.Store(w.useMPI()) // before they are stopped
		cause := context.Cause(job)
		w.lease.End(cause)
		v, ok := errors.AsType[*rdzv.Verdict](cause)
		if ok && v.Kind == rdzv.Ended && w.in.signalled == wrap.Everyone {
			w.in.awaitOwn(v.Shared) // the workers are about to get the signal too, and must get it once
		}
		cancel(w.in.stopFor(cause))
	})
	return ctx
}

// noteBinding reports where a worker will run. What was asked for and is not possible is reported
// to everybody for the first node: it is likely to be the same on the others.
func (w *workers) noteBinding(task *Local, id envmap.Identity, b envmap.Binding) {
	if task.numa == nil {
		return
	}
	bound := len(b.Nodes) > 0
	note := fmt.Sprintf("rank %d is bound to %s (%s)", id.Rank, b, b.Why)
	if !bound {
		note = fmt.Sprintf("rank %d is not bound: %s", id.Rank, b.Why)
	}
	w.events.send(EnvironmentNote{Text: note, Verbose: bound || id.NodeRank > 0})
	if err := task.NoMemoryNode(); err != nil && id.LocalRank == 0 {
		note := fmt.Sprintf("Config.Bind %s prefers no memory node: %v", w.local.Config.Bind, err)
		w.events.send(EnvironmentNote{Text: note, Verbose: id.NodeRank > 0})
	}
}

// binding is b for package wrap.
func binding(b envmap.Binding) wrap.Binding {
	to := wrap.Binding{CPUs: b.CPUs}
	if b.Memory {
		to.Node = &b.Nodes[0]
	}
	return to
}
