package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/collectives"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/output"
	"rdzv/rdzv/agent/internal/postmortem"
	"rdzv/rdzv/agent/internal/recorders"
	"rdzv/rdzv/agent/internal/tally"
	"rdzv/wrap"
)

// workers are the workers of this agent in one attempt.
type workers struct {
	*membership
	local     *Local        // this and the next two are those of the attempt: goroutines that
	session   *rdzv.Session // answer questions may use them when the membership has others
	world     rdzv.World
	in        *interrupts
	endings   []ending
	logs      []*os.File // of each; nil for those without
	outputs   []wrap.LastOutput
	oomBefore int // kills by the kernel's out-of-memory killer before they began
	tally     tally.Tally
	settled   func() // to be called when all agents have settled
	left      []int  // processes that could not be killed
	mpi       atomic.Bool

	// Goroutines that answer questions may use these two when they are prepared.
	prepared  atomic.Bool
	ras       *collectives.Service // NCCL's, in the workers
	recorders *recorders.Set       // torch's, in the workers
}

// ending is what the report needs to know of a worker's end.
type ending struct {
	file     string // where torch records an exception; "" if nowhere
	findings postmortem.Findings
	joined   bool   // the findings are those of stdout and stderr
	oom      bool   // the kernel ran out of memory while it ran
	hint     string // what to try
}

// run runs the workers until the job has ended and nothing of them is left.
func (w *workers) run() error {
	defer func() {
		for _, e := range w.endings {
			os.Remove(e.file) // it exists if the worker wrote it
		}
	}()
	w.checkShown()
	w.openLogs()
	defer output.Close(w.logs)
	defer w.holdRAS()()
	defer w.recorders.RemoveFIFOs()
	tree, err := w.tree()
	if err != nil {
		return err
	}
	w.prepared.Store(true)
	w.oomBefore = postmortem.OOMKills(w.local.Config.Root)
	stopHeadStart := w.holdBack(&tree)
	stopWatch := w.watchInit()
	stopStall := w.watchStall()
	w.in.begin()
	_, err = wrap.Run(w.stopping(), tree)
	w.in.runs.Store(false)
	stopHeadStart()
	stopWatch()
	stopStall()
	w.tally.Close()
	if w.world.MaxRestarts == 0 {
		w.releasePort() // otherwise the next attempt must get another one
	}
	return err
}

// tree is all workers of this agent.
func (w *workers) tree() (wrap.Tree, error) {
	c, seat := w.local.Config, w.world.Seat
	t := wrap.Tree{
		Grace: c.Grace, Linger: true, JobControl: true, FrozenLimit: w.frozenLimit(),
		Source: w.in.source, Signalled: w.in.signalled, Signals: w.in.forward,
		DumpStacks: w.in.dump, Kill: w.in.kill,
		Started: func(i, pid int) {
			started := tally.Process{Rank: seat.Rank + i, LocalRank: seat.LocalRank + i, PID: pid}
			w.tally.Start(started)
			w.events.send(WorkerStarted(started))
		},
		Dumping: w.dumping, Ended: w.workerEnded, LogLost: w.logLost,
		OutputLost: w.outputLost,
	}
	w.limit(&t)
	identities := w.local.identities()
	for i := range w.local.Workers {
		id := identities.Of(w.world, i, w.conn.addr)
		id.RASAddr = w.ras.Addr()
		id.Recorder.Dump, id.Recorder.Pipe = w.recorders.Paths()
		bound := w.local.numa.Bind(&id, c.Device, i, w.local.Workers)
		environ, err := w.environ(i, id)
		if err != nil {
			return t, err
		}
		w.noteBinding(id, bound)
		worker := wrap.Worker{
			Path: w.local.Path, Dir: w.local.setup.WorkerDir(), Args: c.Program, Env: environ,
			Bind: binding(bound), LastOutput: &w.outputs[i], Line: c.Line,
		}
		w.output(&worker, i)
		if i == 0 {
			worker.Stdin = c.Stdin
		}
		t.Workers = append(t.Workers, worker)
	}
	return t, nil
}

// output sets what becomes of the output of the i-th worker. If it is shown and nothing else, the
// worker gets stdout of this agent itself.
func (w *workers) output(worker *wrap.Worker, i int) {
	c, rank := w.local.Config, w.world.Seat.Rank+i
	shown := w.local.shown.Has(rank, w.world.Seat.LocalRank+i)
	if shown {
		worker.Stdout, worker.Stderr = c.Stdout, c.Stderr
	}
	if shown && c.Tag == nil && w.logs[i] == nil {
		worker.Capture = !c.NoCapture && !(shown && c.stderrOnTerminal())
		return
	}
	worker.Output = &wrap.Output{
		Log: w.logs[i], Hold: w.local.shown.Count(w.world.Size, w.world.Seat.LocalSize) > 1,
		Relayed: w.local.Placement.Launcher != envmap.None,
	}
	if c.Tag != nil {
		worker.Output.Tag = c.Tag(rank, host.Name())
	}
}

// checkShown shows all ranks if the job has none of those that are to be shown.
func (w *workers) checkShown() {
	l, size, localSize := w.local, w.world.Size, w.world.Seat.LocalSize
	if l.Config.Show == "none" || l.shown.Count(size, localSize) > 0 {
		return
	}
	why := fmt.Sprintf("the last rank of the job is %d", size-1)
	if strings.HasPrefix(l.Config.Show, "local:") {
		why = fmt.Sprintf("the last local rank is %d", localSize-1)
	}
	if l.shown, _ = output.ParseRanks(""); w.world.Seat.Rank == 0 {
		w.events.send(FlagIgnored{"Config.Show " + l.Config.Show, why})
	}
}

// holdRAS reserves an address for NCCL's RAS service. It ends with release.
func (w *workers) holdRAS() (release func()) {
	var err error
	if w.ras, err = collectives.Hold(w.local.env, w.world); err != nil {
		w.events.diagnose(Verbose, err) // they share NCCL's own with others
	}
	return w.ras.Release
}

// logFiles are the files of this run.
func (m *membership) logFiles() output.Logs {
	w := m.world
	return output.Logs{Dir: m.local.Config.LogDir, Job: w.Job, Began: w.Began, Attempt: w.Attempt}
}

// openLogs opens the logs. The workers run without them if that fails.
func (w *workers) openLogs() {
	c, seat, logs := w.local.Config, w.world.Seat, w.logFiles()
	w.logs, w.recorders = make([]*os.File, w.local.Workers), &recorders.Set{}
	if c.LogDir == "" {
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), logWait, wrap.ErrLogBlocked)
	defer cancel()
	python := w.local.setup.Program.Python != ""
	var prepared *recorders.Set
	opened, err := host.Await(ctx, func() {}, func() ([]*os.File, error) {
		files, err := logs.Open(seat.Rank, w.local.Workers)
		if err == nil {
			prepared = recorders.Prepare(filepath.Dir(logs.File(0)), python)
		}
		if err == nil && seat.LocalRank == 0 {
			if err := logs.Link(); err != nil {
				w.events.diagnose(Warning, err)
			}
		}
		return files, err
	})
	if err != nil {
		w.events.diagnose(Warning, fmt.Errorf("cannot open the logs: %w", err))
		return
	}
	w.logs, w.recorders = opened, prepared
	if seat.Rank == 0 {
		dir := filepath.Dir(logs.File(0))
		w.events.send(EnvironmentNote{Text: "the output of each rank is in " + dir, Verbose: true})
	}
}

// logWait is how long the logs may take to be opened.
const logWait = 5 * time.Second

// logLost reports that the log of the i-th worker lacks some of its output.
func (w *workers) logLost(i int, reason error, bytes int64) {
	rank := w.world.Seat.Rank + i
	w.events.send(LogLost{
		Rank: rank, File: w.logFiles().File(rank), Err: reason, Text: reason.Error(), Bytes: bytes,
	})
}

// outputLost reports that some of the output of the i-th worker could not be shown.
func (w *workers) outputLost(i int, stream string, reason error, bytes int64) {
	e := OutputLost{
		Rank: w.world.Seat.Rank + i, Stream: stream, Err: reason, Text: reason.Error(), Bytes: bytes,
	}
	if w.logs[i] != nil {
		e.Log = w.logFiles().File(e.Rank)
	}
	w.events.send(e)
}

// frozenLimit is how long this agent may be stopped, as the other agents see it. A job of one agent
// has nobody to wait for it.
func (w *workers) frozenLimit() time.Duration {
	if w.local.Agents == 1 {
		return 0
	}
	return w.local.Config.lostAfter()
}

// environ is the environment of the i-th worker.
func (w *workers) environ(i int, id envmap.Identity) ([]string, error) {
	file, err := postmortem.NameErrorFile(w.conn.dir)
	if err != nil {
		w.events.diagnose(Verbose, err) // the worker then has none
	} else {
		w.endings[i].file, id.ErrorFile = file, file
	}
	environ := w.local.Config.Environ
	if dir := w.local.setup.WorkerDir(); dir != "" {
		environ = envmap.Changes{Set: []envmap.KV{{Name: "PWD", Value: dir}}}.Apply(environ)
	}
	if _, set := w.local.env["PYTHONUNBUFFERED"]; !set && w.local.Config.piped() {
		unbuffered := []envmap.KV{{Name: "PYTHONUNBUFFERED", Value: "1"}}
		environ = envmap.Changes{Set: unbuffered}.Apply(environ)
	}
	environ, notes, err := envmap.Torch(environ, id, w.local.Config.torchOptions(w.local.OwnTasks))
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
		w.endLease(cause)
		v, ok := errors.AsType[*rdzv.Verdict](cause)
		endedElsewhere := ok && v.Kind == rdzv.Ended && v.By != w.self.ID
		if endedElsewhere && w.in.signalled == wrap.Everyone {
			w.in.awaitOwn(v.Shared) // the workers are about to get the signal too, and must get it once
		}
		cancel(w.in.stopFor(cause))
	})
	return ctx
}

// noteBinding reports where a worker will run. What was asked for and is not possible is reported
// to everybody for the first node: it is likely to be the same on the others.
func (w *workers) noteBinding(id envmap.Identity, b envmap.Binding) {
	if w.local.numa == nil {
		return
	}
	bound := len(b.Nodes) > 0
	note := fmt.Sprintf("rank %d is bound to %s (%s)", id.Rank, b, b.Why)
	if !bound {
		note = fmt.Sprintf("rank %d is not bound: %s", id.Rank, b.Why)
	}
	w.events.send(EnvironmentNote{Text: note, Verbose: bound || id.NodeRank > 0})
	if err := w.local.NoMemoryNode(); err != nil && id.LocalRank == 0 {
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
