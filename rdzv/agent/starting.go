package agent

import (
	"context"
	"sync"
	"time"

	"rdzv/envmap"
	"rdzv/internal/procfs"
	"rdzv/rdzv/agent/internal/headstart"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/reach"
	"rdzv/wrap"
)

// holdBack lets the other workers wait for the end of rank 0's head start, which its agent tells to
// those of others. It ends with stop.
func (w *workers) holdBack(t *wrap.Tree) (stop func()) {
	limit, rank := w.world.HeadStart, w.world.Seat.Rank
	if limit == 0 {
		return func() {}
	}
	// If the other agent does not tell it in time, it has no connection, which is reported by itself.
	latest := time.Now().Add(limit + 2*headstart.LoadLimit)
	for i := range t.Workers {
		if rank+i > 0 && w.local.HeadStart > 0 {
			t.Workers[i].StartAt = latest
		}
	}
	if rank > 0 {
		t.StartNow = w.session.Init().Released()
		return func() {}
	}
	over := make(chan struct{})
	t.StartNow = over
	ctx, cancel := context.WithCancel(w.session.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if !headstart.Await(ctx, limit, procfs.System, w.tally.Rank0) {
			return
		}
		close(over)
		if w.world.Agents > 1 {
			w.write(w.session.Init().Release)
		}
	})
	return func() { cancel(); wg.Wait() }
}

// watchInit reports to the job which workers of this agent have reached init_process_group, until
// all have. It ends with stop.
func (w *workers) watchInit() (stop func()) {
	if w.world.Size == 1 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(w.session.Context())
	watch := reach.Watch{
		Proc: procfs.System, Workers: &w.tally, HasRank0: w.world.Seat.Rank == 0,
		MasterPort: w.world.MasterPort, Job: w.session.Init(), Write: w.write,
		Queried: w.session.Init().Queried(), Rank0Absent: w.session.Init().Rank0Absent(),
	}
	var wg sync.WaitGroup
	wg.Go(func() { watch.Run(ctx) })
	if watch.HasRank0 && w.local.Placement.Launcher == envmap.None {
		wg.Go(func() { w.repeatProgress(ctx) })
	}
	return func() { cancel(); wg.Wait() }
}

// repeatProgress reports on the node of rank 0 what the leader has reported on another one.
func (w *workers) repeatProgress(ctx context.Context) {
	for {
		select {
		case p := <-w.session.Init().Progress():
			if !w.session.Leads() && w.world.StoreHost != host.Name() {
				w.events.send(InitProgress{p})
			}
		case <-ctx.Done():
			return
		}
	}
}
