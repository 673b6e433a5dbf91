package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"rdzv/rdzv"
	"rdzv/wrap"
)

// settlingTime is how long after the job's end the agents have settled, if nothing delays them.
const settlingTime = time.Second

// reportSettling reports once if the agents need more time than that. It ends with stop.
func (w *workers) reportSettling() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-w.reported:
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
	e := Settling{Running: w.ended.running(), Wait: w.local.Config.Grace}
	isWorker := func(p wrap.Process) bool {
		return slices.ContainsFunc(e.Running, func(s WorkerStarted) bool { return s.PID == p.PID })
	}
	e.Left = slices.DeleteFunc(wrap.Remaining(), isWorker)
	return e
}

// dumping reports the workers that are about to print their stacks.
func (w *workers) dumping(dumps []wrap.Dump) {
	e, seat, running := DumpingStacks{IgnoresTerm: true}, w.world.Seat, w.ended.running()
	for _, d := range dumps {
		isThis := func(s WorkerStarted) bool { return s.Rank == seat.Rank+d.Worker }
		if at := slices.IndexFunc(running, isThis); at >= 0 {
			e.Workers = append(e.Workers, running[at])
		}
		e.IgnoresTerm = e.IgnoresTerm && d.IgnoresTerm
	}
	w.events.send(e)
}

// start records the start of a worker.
func (e *endedWorkers) start(worker WorkerStarted) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.started = append(e.started, worker)
}

// running lists the workers that have started and not ended.
func (e *endedWorkers) running() (list []WorkerStarted) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.started {
		if !slices.ContainsFunc(e.list, func(w rdzv.Worker) bool { return w.Rank == s.Rank }) {
			list = append(list, s)
		}
	}
	return list
}
