// Package reach finds out which workers of an agent have reached init_process_group, and tells the
// job.
package reach

import (
	"context"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"time"

	"rdzv/internal/torchlib"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/tally"
	"rdzv/rdzv/agent/internal/wait"
	"rdzv/rdzv/masterport"
	"rdzv/rdzv/stacks"
)

// Rank 0's agent looks for the first time 1 s after it has begun to start its workers whether rank
// 0 listens on MASTER_PORT, and then, as long as it does not, at last every 2 s: what is reported
// counts from the look that has found it. The other agents look only when the leader asks. Those of
// which a worker has not reached init_process_group then look again, at last every 8 s: others
// wait.
const (
	firstLook  = time.Second
	rank0Pause = 2 * time.Second
	lastPause  = 8 * time.Second
)

// absentAfter is how long after it was seen to load torch rank 0 is said not to listen on
// MASTER_PORT.
const absentAfter = 30 * time.Second

// Job learns what is found.
type Job interface {
	Reached(ctx context.Context, except []rdzv.Unreached) error
	Absent(ctx context.Context) error
}

// Watch watches the workers of an agent in one attempt.
type Watch struct {
	Proc    fs.FS // /proc
	World   rdzv.World
	Workers *tally.Tally
	Job     Job
	Write   func(func(context.Context) error) // to Job
	// Absent is called once if rank 0 is a worker of this agent and does not listen on MASTER_PORT.
	Absent  func(rdzv.InitProgress)
	Queried <-chan struct{} // closed when the leader asks

	reached  map[int]bool // by rank
	asked    bool         // by the leader
	reported int          // number of missing ones in the last report; -1 if the next one is due
}

// Run watches until all workers have reached it, or ctx ends.
func (w *Watch) Run(ctx context.Context) {
	w.reached = map[int]bool{}
	if w.World.Seat.Has(0) {
		w.awaitRank0(ctx)
	}
	w.answer(ctx)
}

// awaitRank0 waits until rank 0 has reached init_process_group, and reports that; and that it has
// not, if it has loaded torch long ago.
func (w *Watch) awaitRank0(ctx context.Context) {
	var loaded time.Time // when rank 0 was first seen to load torch
	reported := false
	serves := func() bool {
		pid := w.Workers.Rank0()
		if pid == 0 || masterport.Serves(w.Proc, w.World.MasterPort, pid) {
			return pid != 0
		}
		if reported {
			return false
		}
		python := stacks.FindPython(w.Proc, pid)
		switch {
		case python == 0 || torchlib.LoadingOf(w.Proc, python) == torchlib.NotLoading:
		case loaded.IsZero():
			loaded = time.Now()
		case time.Since(loaded) >= absentAfter:
			reported = true
			w.Absent(w.absence(python))
			w.Write(w.Job.Absent)
		}
		return false
	}
	if lookUntil(ctx, rank0Pause, serves) {
		w.reported = -1
		w.report()
	}
}

// absence says that rank 0, which this process runs, does not listen on MASTER_PORT.
func (w *Watch) absence(python int) rdzv.InitProgress {
	start, _, _ := w.Workers.Times(0)
	return rdzv.InitProgress{
		Ranks: w.World.Size, Missing: []rdzv.NodeRanks{{Host: host.Name(), Ranks: "0"}},
		First: new(0), Host: host.Name(), Python: python, Waited: rdzv.Seconds(time.Since(start)),
		Absent: true,
		Master: net.JoinHostPort(w.World.MasterAddr, strconv.Itoa(w.World.MasterPort)),
	}
}

// lookUntil looks after firstLook, and then after pauses that grow to last, until done is true. It
// is false if ctx ends before.
func lookUntil(ctx context.Context, last time.Duration, done func() bool) bool {
	for pause := firstLook; wait.For(ctx, time.After(pause)); pause = min(2*pause, last) {
		if done() {
			return true
		}
	}
	return false
}

// answer reports which workers are missing when the leader asks, and from then on when there are
// fewer. If none is missing it need not answer.
func (w *Watch) answer(ctx context.Context) {
	if !wait.For(ctx, w.Queried) {
		return
	}
	w.asked = true
	if w.reported > 0 {
		w.reported = -1 // the leader does not know their processes yet
	}
	if w.report() > 0 {
		lookUntil(ctx, lastPause, func() bool { return w.report() == 0 })
	}
}

// report looks, and reports the result if it is not the same as before.
func (w *Watch) report() (missing int) {
	list := w.notReached()
	if len(list) != w.reported {
		w.Write(func(ctx context.Context) error { return w.Job.Reached(ctx, list) })
		w.reported = len(list)
	}
	return len(list)
}

// notReached lists the running workers that have not reached it, once the leader has asked with
// their Python processes.
func (w *Watch) notReached() (missing []rdzv.Unreached) {
	known := func(p tally.Process) bool { return w.reached[p.Rank] }
	running := slices.DeleteFunc(w.Workers.Running(), known)
	pids := tally.PIDs(running)
	for i, reached := range masterport.Reached(w.Proc, w.World.MasterPort, pids) {
		u := rdzv.Unreached{Rank: running[i].Rank}
		if reached {
			w.reached[u.Rank] = true
			continue
		}
		if w.asked {
			u.Python = stacks.FindPython(w.Proc, pids[i])
		}
		missing = append(missing, u)
	}
	return missing
}
