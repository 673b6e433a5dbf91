// Package workerstatus gathers what rdzv status shows of the workers of an agent.
package workerstatus

import (
	"context"
	"io/fs"
	"os"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/inspect"
	"rdzv/rdzv/agent/internal/activity"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/tally"
	"rdzv/rdzv/masterport"
	"rdzv/rdzv/status"
)

// Workers are the workers of an agent in one attempt.
type Workers struct {
	Proc      fs.FS // /proc
	World     rdzv.World
	Tally     *tally.Tally
	Output    func(i int) time.Time // when the i-th has last written something; zero if it has not
	Line      func(i int) string    // the last one of the i-th, "" if there is none
	AllOutput func(i int) bool      // whether all that the i-th writes is noticed
	// Rank0Absent tells whether it has been reported that rank 0 does not listen on MASTER_PORT.
	Rank0Absent bool
	// GPUs reads how much the GPU of each worker is used, until its context ends.
	GPUs func(context.Context) []*status.GPU
	// Traceback is the last one that the i-th has printed, nil if there is none.
	Traceback func(i int) *status.Traceback
}

// Rows returns a row for each worker, in their order. It observes them for inspect.Interval, or
// until ctx ends.
func (w Workers) Rows(ctx context.Context) []status.Rank {
	ranks := make([]status.Rank, w.Tally.Number)
	for i := range ranks {
		ranks[i] = status.Rank{
			Rank: w.World.Seat.RankOf(i), Host: host.Name(), AgentPID: os.Getpid(),
			State: status.Waiting, AllOutput: w.AllOutput(i),
		}
	}
	w.Tally.Show(ranks)
	gpus := make(chan []*status.GPU, 1)
	limited, cancel := context.WithTimeout(ctx, inspect.Interval)
	defer cancel()
	go func() { gpus <- w.GPUs(limited) }()
	w.observe(ctx, ranks)
	w.Tally.Show(ranks) // which have ended meanwhile
	used := <-gpus
	for i := range ranks {
		if ranks[i].ExitCode == nil {
			ranks[i].GPU = used[i]
		}
		if last := w.Output(i); !last.IsZero() {
			ranks[i].Output = new(time.Since(last).Seconds())
			ranks[i].LastLine = w.Line(i)
		}
		if ranks[i].ExitCode == nil {
			ranks[i].Traceback = w.Traceback(i)
		}
	}
	return ranks
}

// observe enters what the kernel shows of those that run.
func (w Workers) observe(ctx context.Context, ranks []status.Rank) {
	var alive []*status.Rank
	var pids []int
	for i, r := range ranks {
		if r.State == status.Alive {
			alive, pids = append(alive, &ranks[i]), append(pids, r.PID)
		}
	}
	used := activity.Watch(ctx, w.Proc, pids, inspect.Interval)
	reached := masterport.Reached(w.Proc, w.World.MasterPort, pids)
	for i, r := range alive {
		if r.Rank == 0 {
			reached[i] = masterport.Serves(w.Proc, w.World.MasterPort, r.PID)
			r.NotListening = w.Rank0Absent && !reached[i]
		}
		r.CPU = &used[i].CPU
		if w.World.Size > 1 {
			r.Init = &reached[i]
		}
		switch used[i].State {
		case 'T', 't':
			r.State = status.Stopped
		case 'D':
			r.State = status.Blocked
		}
	}
}
