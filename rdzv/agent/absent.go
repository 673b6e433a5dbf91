package agent

import (
	"cmp"
	"context"
	"io/fs"
	"time"

	"rdzv/internal/procfs"
	"rdzv/internal/torchlib"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/masterport"
	"rdzv/rdzv/stacks"
)

const (
	// absentAfter is how long after its start rank 0 is said not to listen on MASTER_PORT.
	absentAfter = 3 * time.Second
	// connectingFor is how long a worker must have been trying to connect to be reported: in most
	// jobs rank 0 is only a little later than others.
	connectingFor = 8 * time.Second
)

// watchConnecting reports, once rank 0's agent has said that rank 0 does not listen, how many
// workers of this agent have been trying to connect to it, until none runs that is not connected.
func (w *workers) watchConnecting(ctx context.Context) {
	if !await(ctx, w.session.Rank0Absent()) {
		return
	}
	seen, reported := map[int]span{}, 0
	for pause := firstLook; await(ctx, time.After(pause)); {
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
			w.write(func(ctx context.Context) error { return w.session.Connecting(ctx, ranks, waited) })
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
func (w *workers) connecting() (waiting []int, others int) {
	running := w.ended.running()
	pids := make([]int, len(running))
	for i, s := range running {
		pids[i] = s.PID
	}
	for i, reached := range masterport.Reached(procfs.System, w.world.MasterPort, pids) {
		if isConnecting(procfs.System, pids[i]) {
			waiting = append(waiting, running[i].Rank)
		} else if !reached {
			others++
		}
	}
	return waiting, others
}

func isConnecting(proc fs.FS, pid int) bool {
	return torchlib.Connecting(proc, cmp.Or(stacks.FindPython(proc, pid), pid))
}

// repeatProgress reports on the node of rank 0 what the leader has reported on another one.
func (w *workers) repeatProgress(ctx context.Context) {
	for {
		select {
		case p := <-w.session.InitProgress():
			if !w.session.Leads() && w.world.StoreHost != host.Name() {
				w.events.send(InitProgress{p})
			}
		case <-ctx.Done():
			return
		}
	}
}
