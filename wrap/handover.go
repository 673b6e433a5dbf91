package wrap

import (
	"context"
	"fmt"
	"os"
	"time"

	"rdzv/wrap/internal/watchdog"
)

// spec returns the watchdog's description of the tree and starts the pumps.
func (r *run) spec() (spec watchdog.Spec, err error) {
	index := map[*os.File]int{}
	add := func(f *os.File) int {
		if f == nil {
			return watchdog.Null
		}
		if _, known := index[f]; !known {
			index[f] = len(r.streams)
			r.streams = append(r.streams, f)
		}
		return index[f]
	}
	for i, w := range r.tree.Workers {
		stderr := w.Stderr
		if w.Capture && stderr != nil && w.Output == nil {
			p, pipe, err := startPump(stderr, w.Line)
			if err != nil {
				return spec, fmt.Errorf("cannot capture stderr of worker %d: %w", i, err)
			}
			r.states[i].pump, r.pumps = p, append(r.pumps, p)
			w.LastOutput.is(p.last.Load)
			r.own = append(r.own, pipe)
			stderr = pipe
		}
		args := w.Args
		if len(args) == 0 {
			args = []string{w.Path}
		}
		output, err := r.output(i, add)
		if err != nil {
			return spec, err
		}
		spec.Workers = append(spec.Workers, watchdog.Worker{
			Path: w.Path, Dir: w.Dir, Args: args, Env: w.Env,
			Files:   [3]int{add(w.Stdin), add(w.Stdout), add(stderr)},
			StartAt: monotonic(w.StartAt),
			CPUs:    w.Bind.CPUs, Node: w.Bind.node(), Output: output,
		})
	}
	c := r.tree.Crash
	spec.Crash = watchdog.Crash{
		Trace: add(c.Trace), Stderr: add(c.Stderr), Path: c.Path, Line: c.Line,
	}
	spec.LeaseUntil, _ = r.tree.Lease.state()
	spec.LeaseGrace = r.tree.LeaseGrace
	return spec, nil
}

// handOver sends the workers to the watchdog. If that fails, or ctx ends in the meantime, the
// watchdog is killed before it has started a worker, and killLeft does the rest.
func (r *run) handOver(ctx context.Context, spec watchdog.Spec) {
	interrupted := make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = r.guard.socket.SetWriteDeadline(time.Unix(1, 0))
	})
	err := r.guard.sendSpec(spec, r.streams)
	if !release() {
		<-interrupted
		_ = r.guard.socket.SetWriteDeadline(time.Time{}) // everything may have been sent
	}
	if err != nil {
		r.aborted = ctx.Err() != nil
		_ = r.guard.process.Kill()
	}
	for _, f := range r.own {
		f.Close()
	}
}

// closeStreams ends the pumps and closes their pipes. It may be called again. If a write to a file
// blocks that supports no deadline, the goroutine of a pump ends later, with that write or with the
// process.
func (r *run) closeStreams() {
	until := time.Now().Add(pumpWait)
	for _, p := range r.pumps {
		p.close(until)
	}
	for _, p := range r.pumps {
		select {
		case <-p.done:
		case <-time.After(time.Until(until) + pumpWait/4):
		}
	}
	for _, f := range r.own {
		f.Close() // has no effect after handOver
	}
}
