package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/ending"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/tally"
	"rdzv/wrap"
)

// workerEnded handles the end of a worker; a failure is reported to the job.
func (w *workers) workerEnded(i int, r wrap.Result) {
	seat := w.world.Seat
	worker := rdzv.Worker{
		Rank: seat.RankOf(i), LocalRank: seat.LocalRankOf(i),
		PID: r.PID, Code: r.ExitCode(), Signal: rdzv.Signal(r.Signal), Stopped: r.Stopped,
		RanFor: rdzv.Seconds(r.Took),
	}
	write := func(context.Context) error { return nil }
	switch {
	case errors.Is(r.Err, wrap.ErrHolder): // killed, possibly by the kernel's out-of-memory killer
		worker.Stopped = true // the worker has not failed by itself
		process, final := "holder", false
		if r.Err != wrap.ErrHolder {
			loseTask(w.in, w.local.all().of(i))
			process, final = "task", w.hosting // with its holder; nobody can replace the store
		}
		lost := fmt.Sprintf(
			"lost the %s of rank %d on %s; its workers were killed", process, worker.Rank, host.Name())
		write = func(ctx context.Context) error { return w.session.ReportLoss(ctx, lost, final) }
	case errors.Is(r.Err, wrap.ErrLeaseOver):
		lost := fmt.Sprintf("lost rank %d on %s: stopped it, because its agent had no answer from the "+
			"store for %v", worker.Rank, host.Name(), w.local.Config.lostAfter())
		write = func(ctx context.Context) error { return w.session.ReportLoss(ctx, lost, false) }
	case r.ExitCode() == 0, r.Stopped:
	case r.GroupSignal != 0: // a launcher or the terminal has ended it, and with it the job
		worker.Stopped = true
		write = w.in.endByGroup(r.GroupSignal)
	default:
		w.failed(i, worker, r)
		return
	}
	w.exited(worker) // before the job's end, of which it may be the reason
	w.events.write(write)
	w.tally.End(worker)
}

// exited reports the end of a worker, after the job's end if that was first: it may be what stopped
// the worker.
func (w *workers) exited(worker rdzv.Worker) {
	w.awaitReported()
	w.events.send(WorkerExited{worker})
}

// consequenceWait is how long a failure that seems to be the consequence of another one is held
// back, so that the other one is reported first. A process that fails closes its connections some
// time before it ends, and its peers may end before it.
const consequenceWait = 500 * time.Millisecond

// failed reports a worker's failure to the job: at once, unless it seems to be the consequence of
// another worker's failure, which should be reported first.
func (w *workers) failed(i int, worker rdzv.Worker, r wrap.Result) {
	task := w.local.all().of(i)
	c, e := task.Config, &w.endings[i]
	before := w.before[slices.Index(w.local.all(), task)]
	e.Examine(ending.Workers{
		Root: c.Root, Argv: c.Program, Environ: c.Environ, KillsBefore: before,
		MasterPort: w.world.MasterPort, Fixed: c.MasterPort != 0,
	}, r, &worker)
	w.exited(worker)
	if !e.Findings.Consequence() {
		w.fail(worker)
		return
	}
	ended := time.Now()
	w.tally.Go(func() {
		late := time.NewTimer(consequenceWait)
		defer late.Stop()
		select {
		case <-w.session.Context().Done():
		case <-late.C:
		}
		worker.ReportDelay = rdzv.Seconds(time.Since(ended))
		w.fail(worker)
	})
}

func (w *workers) fail(worker rdzv.Worker) {
	w.events.write(func(ctx context.Context) error { return w.session.Fail(ctx, worker) })
	w.tally.End(worker)
}

// allEnded settles, when the last worker has ended.
func (w *workers) allEnded(list []rdzv.Worker) {
	for i := range list {
		list[i].MPI = w.mpi.Load()
	}
	w.settle(list)
}

// someEnded reports which workers have ended while others still run.
func (w *workers) someEnded(list []rdzv.Worker) {
	w.events.write(func(ctx context.Context) error { return w.session.Progress(ctx, list) })
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
		late := time.NewTimer(settlingTime)
		defer late.Stop()
		select {
		case <-late.C:
			w.events.send(w.settling())
		case <-ctx.Done():
		}
	})
	return func() { cancel(); wg.Wait() }
}

// settling says what this agent waits for.
func (w *workers) settling() Settling {
	wait := w.lease.GraceAfter(context.Cause(w.session.Context()))
	e := Settling{Running: startedOf(w.tally.Running()), Wait: rdzv.Seconds(wait)}
	isWorker := func(p wrap.Process) bool {
		return slices.ContainsFunc(e.Running, func(s WorkerStarted) bool { return s.PID == p.PID })
	}
	left := wrap.Remaining()
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
