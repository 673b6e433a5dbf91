package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"rdzv/internal/procfs"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/stall"
)

// StallAction is what happens when the workers of a job have stalled.
type StallAction string

const (
	StallEnd    StallAction = "end"    // the attempt ends, as after a failure
	StallStacks StallAction = "stacks" // their stacks are reported, once per stall
)

// watchStall watches for a stall until stop.
func (w *workers) watchStall() (stop func()) {
	c := w.local.Config
	if c.StallTimeout == 0 {
		return func() {}
	}
	silence := stall.Measure(stall.Workers{
		Proc: procfs.System, World: w.world, Tally: &w.tally, Output: w.lastOutput,
		Read: w.outputIsRead(), RAS: w.ras, Recorders: w.recorders,
	}, c.StallTimeout)
	if !silence.Read {
		w.events.diagnose(Warning, errors.New("cannot tell whether the job stalls: the output of the "+
			"workers on this node is not read"))
	}
	watch := stall.Watch{
		Silence: silence, Timeout: c.StallTimeout, Ask: w.session.Ask, Report: w.stalled,
	}
	w.observed.measures(silence)
	ctx, cancel := context.WithCancel(w.session.Context())
	var wg sync.WaitGroup
	wg.Go(func() { watch.Run(ctx) })
	return func() {
		w.observed.measures(nil)
		cancel()
		wg.Wait()
	}
}

// lastOutput is when a worker has last written something.
func (w *workers) lastOutput() (last time.Time) {
	for i := range w.outputs {
		if at := w.outputs[i].Time(); at.After(last) {
			last = at
		}
	}
	return last
}

// outputIsRead tells whether all that the workers write is read.
func (w *workers) outputIsRead() bool {
	if w.local.Config.Tag != nil {
		return true
	}
	for _, log := range w.logs {
		if log == nil {
			return false
		}
	}
	return len(w.logs) > 0
}

// stalled reports a stall, and ends the attempt if that is what the user wants.
func (w *workers) stalled(ctx context.Context, r stall.Report) {
	c := w.local.Config
	e := Stalled{
		Attempt: w.world.Attempt, Number: r.Number, Timeout: c.StallTimeout, Stacks: r.Stacks,
		Ends: c.StallAction != StallStacks, Stall: r.Stall,
	}
	w.writeStall(ctx, &e)
	w.events.send(e)
	if e.Ends {
		w.write(func(ctx context.Context) error { return w.session.Stall(ctx, e.Stall, r.Ran) })
	}
}

// writeStall writes the report of a stall beside the logs, and notes its file in the event.
func (w *workers) writeStall(ctx context.Context, e *Stalled) {
	c := w.local.Config
	if c.LogDir == "" {
		return
	}
	name := filepath.Join(filepath.Dir(w.logFiles().File(0)), fmt.Sprintf("stall-%d.txt", e.Number))
	text := c.DescribeStall(*e)
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

// describeStall is the default of Config.DescribeStall.
func describeStall(e Stalled) string {
	text, err := json.MarshalIndent(stalledFormOf(e), "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text) + "\n"
}
