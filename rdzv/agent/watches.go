package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"rdzv/envmap"
	"rdzv/internal/procfs"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/headstart"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/reach"
	"rdzv/rdzv/agent/internal/stall"
	"rdzv/rdzv/agent/internal/tally"
	"rdzv/rdzv/agent/internal/wait"
	"rdzv/rdzv/masterport"
	"rdzv/wrap"
)

// holdBack lets the other workers wait for the end of rank 0's head start, which its agent tells to
// those of others. It ends with stop.
func (w *workers) holdBack(trees []wrap.Tree) (stop func()) {
	limit, seat := time.Duration(w.world.HeadStart), w.world.Seat
	if limit == 0 {
		return func() {}
	}
	// If the other agent does not tell it in time, it has no connection, which is reported by itself.
	latest := time.Now().Add(limit + 2*headstart.LoadLimit)
	over := make(chan struct{})
	var startNow <-chan struct{} = over
	if !seat.Has(0) {
		startNow = w.session.HeadStartOver()
	}
	i := 0
	for j := range trees {
		t := &trees[j]
		t.StartNow = startNow
		for k := range t.Workers {
			if seat.RankOf(i) > 0 && w.local.HeadStart > 0 {
				t.Workers[k].StartAt = latest
			}
			i++
		}
	}
	if !seat.Has(0) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(w.session.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if !headstart.Await(ctx, limit, procfs.System, w.tally.Rank0) {
			return
		}
		close(over)
		if w.world.Agents > 1 {
			w.events.write(w.session.EndHeadStart)
		}
	})
	return func() { cancel(); wg.Wait() }
}

// watchInit reports which ranks have not reached init_process_group, until all have, if this agent
// has rank 0. It ends with stop.
func (w *workers) watchInit() (stop func()) {
	if w.world.Size == 1 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(w.session.Context())
	var wg sync.WaitGroup
	if w.world.Seat.Has(0) {
		watch := reach.Watch{Workers: w.reach(), Ask: w.session.Ask, Report: w.reportInit}
		wg.Go(func() { watch.Run(ctx) })
	}
	if w.local.Config.RankTimes {
		wg.Go(func() { w.timeInit(ctx) })
	}
	return func() { cancel(); wg.Wait() }
}

func (w *workers) reach() reach.Workers {
	return reach.Workers{Proc: procfs.System, World: w.world, Tally: &w.tally}
}

// reportInit reports which ranks have not reached init_process_group. Without a launcher the agents
// print in different places: then the one that leads the job reports it too, on another node.
func (w *workers) reportInit(ctx context.Context, p rdzv.InitProgress) {
	w.rank0Absent.Store(p.Absent)
	w.events.send(InitProgress{p})
	if w.local.Placement.Launcher != envmap.None || w.session.Leads() ||
		w.world.StoreHost == host.Name() {
		return
	}
	text, err := json.Marshal(p)
	if err == nil {
		_, _, err = w.session.Ask(ctx, rdzv.Question{Kind: reach.Announcement, Arg: string(text)})
	}
	if err != nil {
		w.events.diagnose(Verbose, err)
	}
}

// timeInit notes when workers reach init_process_group, as long as that is usual, to a second.
func (w *workers) timeInit(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, usualInit)
	defer cancel()
	for missing := w.tally.Number; missing > 0 && wait.For(ctx, time.After(time.Second)); {
		missing = w.tally.Number
		running, port := w.tally.Running(), w.world.MasterPort
		for i, reached := range masterport.Reached(procfs.System, port, tally.PIDs(running)) {
			if p := running[i]; p.Rank == 0 {
				reached = masterport.Serves(procfs.System, port, p.PID)
			}
			if reached {
				w.tally.Reached(running[i].Rank)
				missing--
			}
		}
	}
}

// usualInit is how long after their start workers are watched by timeInit.
const usualInit = 5 * time.Minute

// The times after which a traceback of a worker that runs is reported, and how often it is looked
// for.
var tracebackReports = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute}

const tracebackInterval = 5 * time.Second

// watchTracebacks reports workers that have printed a traceback, and nothing after it, but still
// run. It ends with stop.
func (w *workers) watchTracebacks() (stop func()) {
	ctx, cancel := context.WithCancel(w.session.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		told := make([]int, w.tally.Number)
		for wait.For(ctx, time.After(tracebackInterval)) {
			for _, p := range w.tally.Running() {
				i := slices.Index(w.world.Seat.AllRanks(), p.Rank)
				text, at := w.output.last[i].Traceback()
				ago := time.Since(at)
				if text == nil || w.output.last[i].Time().Sub(at) > time.Second {
					told[i] = 0
					continue
				}
				if told[i] == len(tracebackReports) || ago < tracebackReports[told[i]] {
					continue
				}
				told[i]++
				if t := w.output.traceback(i); t != nil {
					w.events.diagnose(Warning, fmt.Errorf("rank %d printed a traceback %v ago and is still "+
						"running: %s", p.Rank, ago.Truncate(time.Second), t.Exception))
				}
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// watchStall watches for a stall until stop.
func (w *workers) watchStall() (stop func()) {
	c := w.local.Config
	if c.StallTimeout == 0 {
		return func() {}
	}
	silence := stall.Measure(stall.Workers{
		Proc: procfs.System, World: w.world, Tally: &w.tally, Output: w.output.lastTime,
		Read: w.output.isRead(), Traceback: w.output.traceback, RAS: w.ras,
	}, c.StallTimeout)
	if !silence.Read {
		w.events.diagnose(Warning, errors.New("cannot tell whether the job stalls: the output of the "+
			"workers on this node is not read"))
	}
	watch := stall.Watch{
		Silence: silence, Timeout: c.StallTimeout, Ask: w.session.Ask, Report: w.stalled,
	}
	w.measures(silence)
	ctx, cancel := context.WithCancel(w.session.Context())
	var wg sync.WaitGroup
	wg.Go(func() { watch.Run(ctx) })
	if w.local.Config.RankTimes {
		wg.Go(func() { w.timeInit(ctx) })
	}
	return func() {
		w.measures(nil)
		cancel()
		wg.Wait()
	}
}

// stalled reports a stall, and ends the attempt if that is what the user wants.
func (w *workers) stalled(ctx context.Context, r stall.Report) {
	c := w.local.Config
	e := Stalled{
		Attempt: w.world.Attempt, Number: r.Number, Timeout: rdzv.Seconds(c.StallTimeout),
		Ends: c.StallAction != StallStacks, Stacks: r.Stacks, Stall: r.Stall,
	}
	w.writeStall(ctx, &e)
	w.events.send(e)
	if e.Ends {
		w.events.write(func(ctx context.Context) error { return w.session.Stall(ctx, e.Stall, r.Ran) })
	}
}

// writeStall writes the report of a stall beside the logs, and notes its file in the event.
func (w *workers) writeStall(ctx context.Context, e *Stalled) {
	c := w.local.Config
	if c.LogDir == "" {
		return
	}
	dir := filepath.Dir(w.output.files().File(0))
	name := filepath.Join(dir, fmt.Sprintf("stall-%d.txt", e.Number))
	describe := c.DescribeStall
	if describe == nil {
		describe = describeStall
	}
	text := describe(*e)
	ctx, cancel := context.WithTimeout(ctx, logWait)
	defer cancel()
	_, err := host.Await(ctx, func() {}, func() (struct{}, error) {
		return struct{}{}, os.WriteFile(name, []byte(text), 0o666)
	})
	if err != nil {
		w.events.diagnose(Warning, fmt.Errorf("cannot write the report of the stall: %w", err))
		return
	}
	e.File = name
}
