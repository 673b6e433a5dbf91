package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/go-multierror"

	"rdzv/internal/procfs"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/devicefiles"
	"rdzv/rdzv/agent/internal/ending"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/postmortem"
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
	case errors.Is(r.Err, wrap.ErrRunner): // killed, possibly by the kernel's out-of-memory killer
		worker.Stopped = true // the worker has not failed by itself
		process, final := "runner", false
		if t := w.local.all().of(i); hasDied(t) {
			loseTask(w.in, t)
			process, final = "task", w.hosting // with its runner; nobody can replace the store
		}
		lost := fmt.Sprintf(
			"lost the %s of rank %d on %s; its workers were killed", process, worker.Rank, host.Name())
		write = func(ctx context.Context) error { return w.session.ReportLoss(ctx, lost, final) }
	case errors.Is(r.Err, wrap.ErrLeaseOver):
		lost := fmt.Sprintf("lost rank %d on %s: stopped it, because its agent had no answer from the "+
			"store for %v", worker.Rank, host.Name(), w.local.Config.lostAfter())
		write = func(ctx context.Context) error { return w.session.ReportLoss(ctx, lost, false) }
	case r.ExitCode() == 0:
	case r.Stopped:
		worker.Disconnected = postmortem.Examine(r.Stderr, "", r.Signal != 0).Consequence()
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
		Root: c.Root, Argv: c.Program, KillsBefore: before, Python: task.setup.CertainPython(),
		MasterPort: w.world.MasterPort, Fixed: c.MasterPort != 0,
	}, r, &worker)
	_, e.TracedAt = w.output.last[i].Traceback()
	worker.Disconnected = e.Findings.Consequence()
	w.exited(worker)
	if !worker.Disconnected {
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

// unreadyError is a problem that was found when the world was agreed.
type unreadyError struct{ rdzv.Problem }

func (e *unreadyError) Error() string { return e.Text }

func (e *unreadyError) Hint() string { return e.Problem.Hint }

// cannotStart ends the job because no worker of this agent can be started with what rank 0's agent
// exports: the first one has failed, with the exit code that it would have.
func (w *workers) cannotStart() {
	for _, p := range w.unready[1:] {
		w.events.diagnose(Warning, &unreadyError{p})
	}
	w.endings[0].Hint = w.unready[0].Hint
	w.cannotRun(0, w.tally.Number, &unreadyError{w.unready[0]})
}

// cannotRun ends the job because this agent could not run the workers of a task, of which the first
// one has this index, or could not end them. The number of those that it has not run is given. A
// runner that has died is a loss, as that of the agent itself would be, also if all workers had
// ended.
func (w *workers) cannotRun(first, number int, err error) {
	seat := w.world.Seat
	if errors.Is(err, wrap.ErrRunner) {
		process := "runner"
		if t := w.local.all().of(first); isLoss(err) && hasDied(t) {
			process = "task"
			loseTask(w.in, t)
		}
		lost := fmt.Sprintf("lost the %s of rank %d on %s; what its workers had left was killed",
			process, seat.RankOf(first), host.Name())
		w.events.write(func(ctx context.Context) error { return w.session.ReportLoss(ctx, lost, false) })
	}
	failed := rdzv.Worker{
		Rank: seat.RankOf(first), LocalRank: seat.LocalRankOf(first), Code: CodeAgent, Text: err.Error(),
	}
	unready, isUnready := errors.AsType[*unreadyError](err)
	if isUnready {
		failed.Code = problemCode(unready.Kind)
	} else if !isLoss(err) {
		w.events.diagnose(Warning, err)
	}
	if !isLoss(err) {
		w.events.write(func(ctx context.Context) error { return w.session.Fail(ctx, failed) })
	}
	for i := first; i < first+number; i++ {
		worker := rdzv.Worker{ // as one that was stopped before it was started
			Rank: seat.RankOf(i), LocalRank: seat.LocalRankOf(i),
			Signal: rdzv.Signal(syscall.SIGTERM), Stopped: true,
		}
		if i == first && !isLoss(err) {
			worker = failed
		}
		w.tally.End(worker)
	}
}

// hasDied tells whether the process of a task has, if that is another one than this process.
func hasDied(t *Local) bool {
	return t.task != nil && t.task.HasDied()
}

// isLoss tells whether a runner has died and nothing is left.
func isLoss(err error) bool { return errors.Is(err, wrap.ErrRunner) && len(survivors(err)) == 0 }

// survivors are the processes that could not be killed, according to the errors of wrap.Run for
// each task.
func survivors(err error) (pids []int) {
	all, several := errors.AsType[*multierror.Error](err)
	if s, is := errors.AsType[*wrap.SurvivorError](err); is && !several {
		return []int{s.PID}
	}
	for _, e := range all.WrappedErrors() {
		pids = append(pids, survivors(e)...)
	}
	return pids
}

// closeLimit is how long after the end of an attempt the next one waits for device files.
const closeLimit = 30 * time.Second

// awaitClosed waits until processes of the old workers that could not be killed have closed the
// files of their devices.
func awaitClosed(ctx context.Context, events *reporter, pids []int) {
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	devicefiles.AwaitClosed(ctx, procfs.System, pids, func(pid int, file string) {
		events.diagnose(Warning, fmt.Errorf("waiting up to %v for pid %d on %s to close %s",
			closeLimit, pid, host.Name(), file))
	})
}
