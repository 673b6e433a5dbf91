package agent

import (
	"context"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rdzv/envmap"
	"rdzv/internal/procfs"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/collectives"
	"rdzv/rdzv/agent/internal/ending"
	"rdzv/rdzv/agent/internal/gpuuse"
	"rdzv/rdzv/agent/internal/launcher"
	"rdzv/rdzv/agent/internal/overlap"
	"rdzv/rdzv/agent/internal/recorders"
	"rdzv/rdzv/agent/internal/setup"
	"rdzv/rdzv/agent/internal/stall"
	"rdzv/rdzv/agent/internal/tally"
	"rdzv/rdzv/agent/internal/workerstatus"
	"rdzv/rdzv/masterport"
	"rdzv/rdzv/stacks"
	"rdzv/rdzv/status"
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
	hosting bool           // this agent hosts the store
	unready []rdzv.Problem // why no worker can be started
	lease   overlap.Lease
	// awaitReported waits until the end of the attempt has been reported, if it has ended.
	awaitReported func()
	settle        func([]rdzv.Worker)  // reports how all workers have ended
	measures      func(*stall.Silence) // gets what measures the workers' silence; nil if nothing does

	output  workerOutput
	endings []ending.Ending
	before  []int // kills by the kernel's out-of-memory killer before they began, of each task
	tally   tally.Tally
	mpi     atomic.Bool
	// rank0Absent says that it has been reported that rank 0 does not listen on MASTER_PORT.
	rank0Absent atomic.Bool
	settled     func() // to be called when all agents have settled
	// vanishes says that this agent leaves without having settled when nothing of its trees is left.
	vanishes bool
	left     []int // processes that could not be killed

	recorders *recorders.Set // torch's, in the workers

	// What goroutines that answer questions use of local, which the next attempt may change.
	setup   setup.Setup
	base    []string         // their environment before rdzv adds to it
	devices []envmap.Devices // of each task

	// They may use ras when it is prepared.
	prepared atomic.Bool
	ras      *collectives.Service // NCCL's, in the workers
}

// useMPI tells whether workers that run are programs of Open MPI: connected to the launcher's PMIx
// server. If such a program ends without MPI_Finalize, MPI_Init of the next one in the same task
// hangs.
func (w *workers) useMPI() bool {
	port := launcher.PMIxPort(w.local.env)
	if w.world.MaxRestarts == 0 || port == 0 || w.local.OwnTasks {
		return false
	}
	pids := tally.PIDs(w.tally.Running())
	return slices.Contains(masterport.Reached(procfs.System, port, pids), true)
}

// askRAS asks NCCL's RAS service for a user.
func (w *workers) askRAS(ctx context.Context) <-chan collectives.Answer {
	if !w.prepared.Load() {
		return (&collectives.Service{}).AskForUser(ctx)
	}
	return w.ras.AskForUser(ctx)
}

// status returns a row for each worker. It observes them for inspect.Interval, or until ctx ends.
func (w *workers) status(ctx context.Context, proc fs.FS) []status.Rank {
	return workerstatus.Workers{
		Proc: proc, World: w.world, Tally: &w.tally,
		Output:    func(i int) time.Time { return w.output.last[i].Time() },
		Line:      w.output.lastLine,
		GPUs:      w.gpus,
		AllOutput: func(i int) bool { return w.output.last[i].All() },
		Traceback: w.output.traceback, Rank0Absent: w.rank0Absent.Load(),
	}.Rows(ctx)
}

// noteInit notes which workers have reached init_process_group, if there is more than one.
func (w *workers) noteInit(proc fs.FS, list []stacks.Worker) {
	if w.world.Size == 1 {
		return
	}
	pids := make([]int, len(list))
	for i := range list {
		pids[i] = list[i].PID
	}
	reached := masterport.Reached(proc, w.world.MasterPort, pids)
	for i := range list {
		if list[i].Rank == 0 {
			reached[i] = masterport.Serves(proc, w.world.MasterPort, list[i].PID)
		}
		list[i].Init = &reached[i]
	}
}

// gpus are how much the GPUs of the workers are used; nil for those of which it is not known. If
// each task may use other GPUs than this process, they can have the same numbers.
func (w *workers) gpus(ctx context.Context) []*status.GPU {
	used, entries := make([]*status.GPU, w.tally.Number), make([]string, w.tally.Number)
	tasks := map[string]int{} // of each entry
	for i := range used {
		task := slices.Index(w.local.all(), w.local.all().of(i))
		entries[i] = w.devices[task].EntryOf(w.world.Seat.LocalRankOf(i))
		if other, taken := tasks[entries[i]]; taken && other != task {
			return used
		}
		tasks[entries[i]] = task
	}
	all := gpuuse.Read(ctx, w.devices[0].Vendor, w.base)
	for i := range used {
		used[i] = gpuuse.Of(all, entries[i])
	}
	return used
}

// details are those of the workers; ended are how they ended, if all have.
func (w *workers) details(ended []rdzv.Worker) (list []rdzv.Detail) {
	if w.world.Size == 0 || w.world.Seat.RankOf(0) < 0 {
		return nil // it was not agreed, or this agent is a spare
	}
	known := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return t.UnixMilli()
	}
	v := w.session.Verdict() // that of a worker's failure may arrive later
	for i := range w.tally.Number {
		rank := w.world.Seat.RankOf(i)
		start, init, end := w.tally.Times(rank)
		d := rdzv.Detail{
			Rank: rank, Start: known(start), Init: known(init),
			FirstOutput: known(w.output.last[i].First()), End: known(end),
		}
		failed := func(e rdzv.Worker) bool { return e.Rank == rank && e.FailedAlone() }
		if slices.ContainsFunc(ended, failed) && (v == nil || v.By == w.id && v.Rank == rank) {
			d.Stderr, d.Joined = w.endings[i].Findings.Lines, w.endings[i].Joined
			d.Log = w.output.logOf(rank)
		}
		list = append(list, d)
	}
	return list
}

// settlingTime is how long after the job's end the agents have settled, if nothing delays them.
const settlingTime = time.Second

// reportSettling reports once if the agents need more time than that, after the end of the attempt
// has been reported. It ends with stop.
func (w *workers) reportSettling(reported <-chan struct{}) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-reported:
		case <-ctx.Done():
			return
		}
		late := time.NewTimer(w.settlingWait())
		defer late.Stop()
		select {
		case <-late.C:
			w.events.send(w.settling())
		case <-ctx.Done():
		}
	})
	return func() { cancel(); wg.Wait() }
}

// settlingWait is how long reportSettling waits. If the workers' lease is over, as on a node that
// is cut off, they are being stopped since then, and may have ended 1 s after this agent has
// noticed that it is cut off.
func (w *workers) settlingWait() time.Duration { return settlingTime - w.lease.OverFor() }

// settling says what this agent waits for.
func (w *workers) settling() Settling {
	wait := w.lease.GraceAfter(context.Cause(w.session.Context()))
	e := Settling{Running: startedOf(w.tally.Running()), Wait: rdzv.Seconds(wait)}
	isWorker := func(p wrap.Process) bool {
		return slices.ContainsFunc(e.Running, func(s WorkerStarted) bool { return s.PID == p.PID })
	}
	left := w.local.runner.remaining()
	for _, t := range w.local.Config.Tasks {
		left = append(left, t.Remaining()...)
	}
	e.Left = slices.DeleteFunc(left, isWorker)
	return e
}

// dumping reports the workers of a task that are about to print their stacks.
func (w *workers) dumping(task *Local, first int, dumps []wrap.Dump) {
	e, running := DumpingStacks{IgnoresTerm: true}, startedOf(w.tally.Running())
	for _, d := range dumps {
		isThis := func(s WorkerStarted) bool { return s.Rank == w.world.Seat.RankOf(first+d.Worker) }
		if at := slices.IndexFunc(running, isThis); at >= 0 {
			e.Workers = append(e.Workers, running[at])
		}
		e.IgnoresTerm = e.IgnoresTerm && d.IgnoresTerm
	}
	if task.task != nil {
		e.Stderr = task.Config.Stderr
	}
	w.events.send(e)
}

// startedOf are the events of the starts of workers.
func startedOf(list []tally.Process) (events []WorkerStarted) {
	for _, p := range list {
		events = append(events, WorkerStarted(p))
	}
	return events
}
