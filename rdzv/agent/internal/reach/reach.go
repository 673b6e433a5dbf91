// Package reach finds out which ranks have not reached init_process_group. Rank 0's agent asks all
// agents.
package reach

import (
	"cmp"
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"rdzv/internal/torchlib"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/tally"
	"rdzv/rdzv/agent/internal/wait"
	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/masterport"
	"rdzv/rdzv/stacks"
)

// Question asks an agent which of its workers have not reached init_process_group. Announcement
// tells all agents what is to be reported: its argument is an InitProgress in JSON.
const (
	Question     = "init"
	Announcement = "init progress"
)

// Rank 0's agent looks for the first time 1 s after it has begun to start its workers whether rank
// 0 listens on MASTER_PORT, and then, as long as it does not, at last every 2 s: what is reported
// counts from the look that has found it.
const (
	firstLook = time.Second
	lastPause = 2 * time.Second
)

// absentAfter is how long after it was seen to load torch rank 0 is said not to listen on
// MASTER_PORT.
const absentAfter = 30 * time.Second

// Workers are those of one agent in one attempt.
type Workers struct {
	Proc  fs.FS // /proc
	World rdzv.World
	Tally *tally.Tally
}

// Answer is an agent's JSON answer to Question.
type Answer struct {
	Missing []int `json:"missing,omitempty"` // ranks that run and have not reached it, in order
	// Python is the process of the first of them that runs Python: the worker, or a descendant of it;
	// 0 if there is none.
	Python int `json:"python,omitempty"`
}

// Answer looks which of the workers have not reached init_process_group.
func (w Workers) Answer() (a Answer) {
	running := w.Tally.Running()
	slices.SortFunc(running, func(p, q tally.Process) int { return cmp.Compare(p.Rank, q.Rank) })
	pids := tally.PIDs(running)
	for i, reached := range masterport.Reached(w.Proc, w.World.MasterPort, pids) {
		switch {
		case reached:
			continue
		case len(a.Missing) == 0:
			a.Python = stacks.FindPython(w.Proc, pids[i])
		}
		a.Missing = append(a.Missing, running[i].Rank)
	}
	return a
}

// Watch is what rank 0's agent does.
type Watch struct {
	Workers
	Ask    func(context.Context, rdzv.Question) ([]rdzv.Answer, []rdzv.Peer, error)
	Report func(context.Context, rdzv.InitProgress)

	late bool // it was reported that rank 0 does not listen
}

// Run watches until all ranks have reached init_process_group, rank 0 has left it, or ctx ends.
// Nothing counts until rank 0 has reached it, which serves the store there: without it no other
// rank can have connected to that, so that what looks like it is the port of another program.
func (w *Watch) Run(ctx context.Context) {
	if !w.awaitRank0(ctx) {
		return
	}
	begin, plan := time.Now(), newSchedule(w.late)
	for at, more := plan.first(); more && wait.For(ctx, time.After(time.Until(begin.Add(at)))); {
		elapsed := time.Since(begin)
		pid := w.Tally.Rank0()
		if pid == 0 || !masterport.Serves(w.Proc, w.World.MasterPort, pid) {
			return // nobody waits for others any more
		}
		answers, silent, err := w.Ask(ctx, rdzv.Question{Kind: Question})
		found := unknown
		var p rdzv.InitProgress
		if err == nil {
			p = w.progress(answers, elapsed)
			found = stateOf(p, len(silent))
		}
		report := false
		if report, at, more = plan.next(elapsed, found); report {
			w.Report(ctx, p)
		}
	}
}

// awaitRank0 waits until rank 0 has reached init_process_group. It reports that it has not, if it
// has loaded torch long ago. It is false if ctx ends before.
func (w *Watch) awaitRank0(ctx context.Context) bool {
	var loaded time.Time // when rank 0 was first seen to load torch
	return lookUntil(ctx, func() bool {
		pid := w.Tally.Rank0()
		if pid == 0 || masterport.Serves(w.Proc, w.World.MasterPort, pid) {
			return pid != 0
		}
		if w.late {
			return false
		}
		python := stacks.FindPython(w.Proc, pid)
		switch {
		case python == 0 || torchlib.LoadingOf(w.Proc, python) == torchlib.NotLoading:
		case loaded.IsZero():
			loaded = time.Now()
		case time.Since(loaded) >= absentAfter:
			w.late = true
			w.Report(ctx, w.absence(python))
		}
		return false
	})
}

// lookUntil looks after firstLook, and then after pauses that grow to lastPause, until done is
// true. It is false if ctx ends before.
func lookUntil(ctx context.Context, done func() bool) bool {
	for pause := firstLook; wait.For(ctx, time.After(pause)); pause = min(2*pause, lastPause) {
		if done() {
			return true
		}
	}
	return false
}

// absence says that rank 0, which this process runs, does not listen on MASTER_PORT.
func (w *Watch) absence(python int) rdzv.InitProgress {
	start, _, _ := w.Tally.Times(0)
	return rdzv.InitProgress{
		Ranks: w.World.Size, Missing: []rdzv.NodeRanks{{Host: host.Name(), Ranks: "0"}},
		First: new(0), Host: host.Name(), Python: python, Waited: rdzv.Seconds(time.Since(start)),
		Absent: true,
		Master: net.JoinHostPort(w.World.MasterAddr, strconv.Itoa(w.World.MasterPort)),
	}
}

// progress says which ranks are missing. An agent that has not answered has none.
func (w *Watch) progress(answers []rdzv.Answer, elapsed time.Duration) rdzv.InitProgress {
	p := rdzv.InitProgress{
		Ranks: w.World.Size, Reached: w.World.Size, Waited: rdzv.Seconds(elapsed),
	}
	missing, hosts := map[int][]int{}, map[int]string{} // ranks and name of each node, by node rank
	for _, a := range answers {
		var one Answer
		if a.Error != "" || json.Unmarshal(a.Value, &one) != nil || len(one.Missing) == 0 {
			continue
		}
		if first := one.Missing[0]; p.First == nil || first < *p.First {
			p.First, p.Python, p.Host = &first, one.Python, a.Host
		}
		p.Reached -= len(one.Missing)
		node := a.Seat.Node
		missing[node], hosts[node] = append(missing[node], one.Missing...), a.Host
	}
	for _, node := range slices.Sorted(maps.Keys(missing)) {
		n := rdzv.NodeRanks{Host: hosts[node], Ranks: record.Ranges(missing[node])}
		p.Missing = append(p.Missing, n)
	}
	p.Missing, p.More = record.Cut(p.Missing)
	return p
}
