package agent

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"rdzv/internal/procfs"
	"rdzv/internal/torchlib"
	"rdzv/rdzv/stacks"
	"rdzv/wrap"
)

// Rank 0 should be the first that has imported torch, see Config.HeadStart. The other workers start
// when it has done about a third of that, so that its lead is longer where an import takes longer:
// on a slow machine, or one whose cores do other work too.

const (
	headStartLook = 10 * time.Millisecond // between two looks
	// loadLimit is how long the others wait for a rank 0 that loads torch, longer than HeadStart.
	loadLimit = 10 * time.Second
)

// headStart decides when rank 0 has come far enough.
type headStart struct {
	limit  time.Duration // World.HeadStart
	loads  bool          // rank 0 has begun to load torch
	mapped time.Duration // what CPU time it had used by then
}

// over tells whether it has, some time after its start. used is the CPU time of its main thread,
// and waited is how long that had no core to run on, which does not count.
//
// Torch's libraries have been relocated after 34 % of the CPU time of "import torch" with torch
// 1.13 in Debian 12, but after 13 % with 2.6 in Debian 13, where 4 times the CPU time until they
// are mapped is 30 %. A program that imports much before torch would wait too long for that.
func (h *headStart) over(
	elapsed, used, waited time.Duration, loading func() torchlib.Loading,
) bool {
	if elapsed >= h.limit+loadLimit {
		return true
	}
	if !h.loads {
		if loading() == torchlib.NotLoading {
			return elapsed-waited >= h.limit
		}
		h.loads, h.mapped = true, used
	}
	return used >= min(4*h.mapped, h.mapped+h.limit) && loading() == torchlib.Relocated
}

// holdBack lets the other workers wait for the end of rank 0's head start, which its agent tells to
// those of others. It ends with stop.
func (w *workers) holdBack(t *wrap.Tree) (stop func()) {
	limit, rank := w.world.HeadStart, w.world.Seat.Rank
	if limit == 0 {
		return func() {}
	}
	// If the other agent does not tell it in time, it has no connection, which is reported by itself.
	latest := time.Now().Add(limit + 2*loadLimit)
	for i := range t.Workers {
		if rank+i > 0 && w.local.HeadStart > 0 {
			t.Workers[i].StartAt = latest
		}
	}
	if rank > 0 {
		t.StartNow = w.session.Released()
		return func() {}
	}
	over := make(chan struct{})
	t.StartNow = over
	ctx, cancel := context.WithCancel(w.session.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if !w.awaitHeadStart(ctx, headStart{limit: limit}) {
			return
		}
		close(over)
		if w.world.Agents > 1 {
			w.write(w.session.Release)
		}
	})
	return func() { cancel(); wg.Wait() }
}

// awaitHeadStart waits until the head start is over; it is false if ctx ends before.
func (w *workers) awaitHeadStart(ctx context.Context, h headStart) bool {
	for begin := time.Now(); await(ctx, time.After(headStartLook)); {
		worker := w.rank0()
		pid := cmp.Or(stacks.FindPython(procfs.System, worker), worker)
		main := procfs.ReadScheduling(procfs.System, pid)
		loading := func() torchlib.Loading { return torchlib.LoadingOf(procfs.System, pid) }
		if h.over(time.Since(begin), main.Ran, main.Waited, loading) {
			return true
		}
	}
	return false
}

// rank0 is the process of rank 0; 0 if it does not run, or is not a worker of this agent.
func (w *workers) rank0() int {
	running := w.ended.running()
	i := slices.IndexFunc(running, func(s WorkerStarted) bool { return s.Rank == 0 })
	if i < 0 {
		return 0
	}
	return running[i].PID
}
