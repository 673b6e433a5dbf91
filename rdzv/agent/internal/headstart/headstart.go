// Package headstart tells when rank 0 has come far enough for the other ranks to start.
//
// Rank 0 should be the first that has imported torch. The other workers start when it has done
// about a third of that, so that its lead is longer where an import takes longer: on a slow
// machine, or one whose cores do other work too.
package headstart

import (
	"cmp"
	"context"
	"io/fs"
	"time"

	"rdzv/internal/procfs"
	"rdzv/internal/torchlib"
	"rdzv/rdzv/agent/internal/wait"
	"rdzv/rdzv/stacks"
)

const (
	pause = 10 * time.Millisecond // between two looks
	// Limit is how long the other ranks wait for a rank 0 that does not load torch.
	Limit = 200 * time.Millisecond
	// LoadLimit is how long the others wait for a rank 0 that loads torch, longer than the head
	// start.
	LoadLimit = 10 * time.Second
)

// Await waits until the head start is over, which takes limit unless rank 0 loads torch; it is
// false if ctx ends before. rank0 is the process of rank 0, 0 if it does not run.
func Await(ctx context.Context, limit time.Duration, proc fs.FS, rank0 func() int) bool {
	h := headStart{limit: limit}
	for begin := time.Now(); wait.For(ctx, time.After(pause)); {
		worker := rank0()
		pid := cmp.Or(stacks.FindPython(proc, worker), worker)
		main := procfs.ReadScheduling(proc, pid)
		loading := func() torchlib.Loading { return torchlib.LoadingOf(proc, pid) }
		if h.over(time.Since(begin), main.Ran, main.Waited, loading) {
			return true
		}
	}
	return false
}

// headStart decides when rank 0 has come far enough.
type headStart struct {
	limit  time.Duration // of rank 0's lead
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
	if elapsed >= h.limit+LoadLimit {
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
