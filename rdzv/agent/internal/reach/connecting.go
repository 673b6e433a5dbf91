package reach

import (
	"cmp"
	"context"
	"io/fs"
	"time"

	"rdzv/internal/torchlib"
	"rdzv/rdzv/agent/internal/tally"
	"rdzv/rdzv/agent/internal/wait"
	"rdzv/rdzv/masterport"
	"rdzv/rdzv/stacks"
)

// connectingFor is how long a worker must have been trying to connect to be reported: in most jobs
// rank 0 is only a little later than others.
const connectingFor = 8 * time.Second

// watchConnecting reports, once rank 0's agent has said that rank 0 does not listen, how many
// workers of this agent have been trying to connect to it, until none runs that is not connected.
func (w *Watch) watchConnecting(ctx context.Context) {
	if !wait.For(ctx, w.Rank0Absent) {
		return
	}
	seen, reported := map[int]span{}, 0
	for pause := firstLook; wait.For(ctx, time.After(pause)); {
		waiting, others := w.connecting()
		if len(waiting)+others == 0 {
			return
		}
		now := time.Now()
		for _, rank := range waiting {
			if seen[rank].first.IsZero() {
				seen[rank] = span{now, now}
			}
			seen[rank] = span{seen[rank].first, now}
		}
		ranks, waited := 0, time.Duration(0)
		for rank, s := range seen {
			if now.Sub(s.last) > 2*rank0Pause {
				delete(seen, rank)
			} else if d := now.Sub(s.first); d >= connectingFor {
				if ranks++; ranks == 1 || d < waited {
					waited = d
				}
			}
		}
		if ranks != reported {
			reported = ranks
			w.Write(func(ctx context.Context) error { return w.Job.Connecting(ctx, ranks, waited) })
		}
		if pause = min(2*pause, lastPause); len(seen) > 0 {
			pause = rank0Pause
		}
	}
}

// span is when a worker has been seen first and last that tries to connect. In between it may do so
// at the moment of a look, and does not wait.
type span struct{ first, last time.Time }

// connecting lists the ranks of this agent that try to connect to rank 0, and counts others that
// are not connected. Torch 1.13 keeps the socket of a refused attempt until the next one, so that
// it seems to be being connected.
func (w *Watch) connecting() (waiting []int, others int) {
	running := w.Workers.Running()
	pids := tally.PIDs(running)
	for i, reached := range masterport.Reached(w.Proc, w.MasterPort, pids) {
		if IsConnecting(w.Proc, pids[i]) {
			waiting = append(waiting, running[i].Rank)
		} else if !reached {
			others++
		}
	}
	return waiting, others
}

// IsConnecting tells whether a worker, or the Python below it, tries to connect to another process.
func IsConnecting(proc fs.FS, pid int) bool {
	return torchlib.Connecting(proc, cmp.Or(stacks.FindPython(proc, pid), pid))
}
