package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"rdzv/envmap"
	"rdzv/internal/procfs"
	"rdzv/rdzv"
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

// initWatch finds out which workers of an agent have reached init_process_group.
type initWatch struct {
	*workers
	reached  map[int]bool // by rank
	asked    bool         // by the leader
	reported int          // number of missing ones in the last report; -1 if the next one is due
}

// watchInit reports to the job which workers of this agent have reached init_process_group, until
// all have. It ends with stop.
func (w *workers) watchInit() (stop func()) {
	if w.world.Size == 1 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(w.session.Context())
	i := &initWatch{workers: w, reached: map[int]bool{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		if w.world.Seat.Rank == 0 {
			i.awaitRank0(ctx)
		}
		i.answer(ctx)
	})
	wg.Go(func() { w.watchConnecting(ctx) })
	if w.world.Seat.Rank == 0 && w.local.Placement.Launcher == envmap.None {
		wg.Go(func() { w.repeatProgress(ctx) })
	}
	return func() { cancel(); wg.Wait() }
}

// awaitRank0 waits until rank 0 has reached init_process_group, and reports that; and that it has
// not, if a program of Python needs long for it.
func (w *initWatch) awaitRank0(ctx context.Context) {
	begin, reported := time.Now(), false
	serves := func() bool {
		pid := w.rank0()
		if pid == 0 || masterport.Serves(procfs.System, w.world.MasterPort, pid) {
			return pid != 0
		}
		python := stacks.FindPython(procfs.System, pid)
		if !reported && python != 0 && time.Since(begin) >= absentAfter {
			reported = true
			w.write(func(ctx context.Context) error { return w.session.Absent(ctx, python) })
		}
		return false
	}
	if lookUntil(ctx, rank0Pause, serves) {
		w.reported = -1
		w.report()
	}
}

// lookUntil looks after firstLook, and then after pauses that grow to last, until done is true. It
// is false if ctx ends before.
func lookUntil(ctx context.Context, last time.Duration, done func() bool) bool {
	for pause := firstLook; await(ctx, time.After(pause)); pause = min(2*pause, last) {
		if done() {
			return true
		}
	}
	return false
}

// answer reports which workers are missing when the leader asks, and from then on when there are
// fewer. If none is missing it need not answer.
func (w *initWatch) answer(ctx context.Context) {
	if !await(ctx, w.session.Look()) {
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
func (w *initWatch) report() (missing int) {
	list := w.look()
	if len(list) != w.reported {
		w.write(func(ctx context.Context) error { return w.session.Reached(ctx, list) })
		w.reported = len(list)
	}
	return len(list)
}

// await waits for an event; it returns false if ctx ends before.
func await[T any](ctx context.Context, event <-chan T) bool {
	select {
	case <-event:
		return true
	case <-ctx.Done():
		return false
	}
}

// look lists the running workers that have not reached it, once the leader has asked with their
// Python processes.
func (w *initWatch) look() (missing []rdzv.Unreached) {
	known := func(s WorkerStarted) bool { return w.reached[s.Rank] }
	running := slices.DeleteFunc(w.ended.running(), known)
	pids := make([]int, len(running))
	for i, s := range running {
		pids[i] = s.PID
	}
	for i, reached := range masterport.Reached(procfs.System, w.world.MasterPort, pids) {
		u := rdzv.Unreached{Rank: running[i].Rank}
		if reached {
			w.reached[u.Rank] = true
			continue
		}
		if w.asked {
			u.Python = stacks.FindPython(procfs.System, pids[i])
		}
		missing = append(missing, u)
	}
	return missing
}
