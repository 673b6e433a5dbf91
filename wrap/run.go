package wrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/wrap/internal/watchdog"
)

// Run starts the workers of t and returns when the last has ended and nothing of the tree is left; the package comment
// says what ends it, what it then returns, and what is killed. The results are those of t.Workers, in their order.
//
// A program that calls Run becomes the adoptive parent of its orphaned descendants for good. Runs may overlap; only if
// a watchdog dies does Run take children that this process has got since Run began, by whatever way, for orphans of
// its tree, and kills them.
func Run(ctx context.Context, t Tree) ([]Result, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	r := newRun(&t)
	defer r.calls.wait()
	defer r.closeStreams()
	if ctx.Err() != nil {
		return r.neverStarted()
	}
	spec, err := r.spec()
	if err != nil {
		return nil, err
	}
	if r.guard, err = startGuard(t.Source != nil); err != nil {
		return nil, err
	}
	r.listen()
	defer r.jobControl()()
	r.handOver(ctx, spec)
	r.supervise(ctx)
	return r.finish()
}

// run is one call of Run.
type run struct {
	tree    *Tree
	guard   *guard
	spare   map[int]bool // children of this process from before
	streams []*os.File   // what the spec refers to
	own     []*os.File   // those of them that are ours to close
	pumps   []*pump      // by worker, nil where there is none
	states  []state
	live    int  // workers that have not ended
	aborted bool // ctx ended before the watchdog had its workers
	calls   *calls
	gone    bool // the watchdog has said that nothing is left
	left    []int
	hearing *hearing // of the source, nil without one
}

// state is what is known of a worker.
type state struct {
	pid     int
	began   time.Time // just before it was started
	running time.Time // just after
	ended   bool
	paused  bool   // stopped by a terminal or shell
	result  Result // written by its call of Ended
}

func newRun(t *Tree) *run {
	n := len(t.Workers)
	return &run{
		tree:   t,
		spare:  children(),
		pumps:  make([]*pump, n),
		states: make([]state, n),
		live:   n,
		calls:  newCalls(2 * n),
	}
}

// spec makes the watchdog's view of the tree and starts the pumps.
func (r *run) spec() (watchdog.Spec, error) {
	spec := watchdog.Spec{Group: unix.Getpgrp()}
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
		stderr, err := r.stderr(i, w)
		if err != nil {
			return spec, fmt.Errorf("cannot capture stderr of worker %d: %w", i, err)
		}
		args := w.Args
		if len(args) == 0 {
			args = []string{w.Path}
		}
		spec.Workers = append(spec.Workers, watchdog.Worker{
			Path: w.Path, Dir: w.Dir, Args: args, Env: w.Env,
			Files: [3]int{add(w.Stdin), add(w.Stdout), add(stderr)},
		})
	}
	return spec, nil
}

// stderr is what worker i gets as standard error: the file itself or the way into a pump to it.
func (r *run) stderr(i int, w Worker) (*os.File, error) {
	if !w.Capture || w.Stderr == nil || isTerminal(w.Stderr) {
		return w.Stderr, nil
	}
	p, in, err := startPump(w.Stderr)
	if err != nil {
		return nil, err
	}
	r.pumps[i] = p
	r.own = append(r.own, in)
	return in, nil
}

// handOver gives the watchdog its workers. If ctx ends meanwhile or that fails, the watchdog is killed before it has
// started any, which finish takes from there.
func (r *run) handOver(ctx context.Context, spec watchdog.Spec) {
	hurried := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		defer close(hurried)
		_ = r.guard.socket.SetWriteDeadline(time.Unix(1, 0))
	})
	err := r.guard.guardIt(spec, r.streams)
	if !forget() {
		<-hurried
		_ = r.guard.socket.SetWriteDeadline(time.Time{}) // if all had gone through, orders are still to be given
	}
	if err != nil {
		r.aborted = ctx.Err() != nil
		_ = r.guard.process.Kill()
	}
	for _, f := range r.own {
		f.Close()
	}
	r.own = nil
}

// supervise passes on signals and orders to stop until the watchdog has gone.
func (r *run) supervise(ctx context.Context) {
	ended, kill, signals := ctx.Done(), r.tree.Kill, r.tree.Signals
	var overdue <-chan time.Time // set once the tree has been told to end
	for {
		select {
		case e, ok := <-r.guard.events:
			if !ok {
				return
			}
			r.take(e)
			if r.live == 0 && !r.tree.Linger && overdue == nil {
				ended, overdue = nil, r.stop(&Stop{})
			}
		case s, ok := <-signals:
			if !ok {
				signals = nil
				continue
			}
			r.guard.order(watchdog.Record{Kind: watchdog.Signal, A: int64(s)})
		case <-ended:
			ended, overdue = nil, r.stop(stopOf(ctx))
		case <-kill:
			kill, ended, overdue = nil, nil, r.kill()
		case <-overdue:
			_ = r.guard.process.Kill() // it hangs or is stopped; finish does its work
		}
	}
}

// stopOf is how ctx, which has ended, wants its tree stopped.
func stopOf(ctx context.Context) *Stop {
	var stop *Stop
	if errors.As(context.Cause(ctx), &stop) {
		return stop
	}
	return &Stop{}
}

// overdue is how much longer than it should need a watchdog is given to end a tree.
const overdue = 2 * time.Second

// stop tells the watchdog to end the tree, and returns when that is overdue.
func (r *run) stop(s *Stop) <-chan time.Time {
	grace := r.tree.grace(s)
	if grace < 0 {
		return r.kill()
	}
	for i := range r.states {
		if s.Delivered && r.states[i].ranAt(s.At) {
			r.guard.order(watchdog.Record{Kind: watchdog.Spare, Index: i})
		}
	}
	order := watchdog.Record{Kind: watchdog.Stop, A: int64(grace)}
	if s.Stacks {
		order.B = 1
	}
	r.guard.order(order)
	return time.After(grace + watchdog.DumpWait + watchdog.KillWait + overdue)
}

// ranAt reports whether the worker was running at t; a zero t is now.
func (s *state) ranAt(t time.Time) bool {
	return !s.began.IsZero() && !s.ended && (t.IsZero() || s.running.Before(t))
}

// kill tells the watchdog to kill the tree, and returns when that is overdue.
func (r *run) kill() <-chan time.Time {
	r.guard.order(watchdog.Record{Kind: watchdog.Kill})
	return time.After(watchdog.KillWait + overdue)
}

// take takes in what the watchdog tells.
func (r *run) take(e watchdog.Record) {
	switch e.Kind {
	case watchdog.Started:
		r.started(e)
	case watchdog.Refused:
		r.ended(e.Index, refused(r.tree.Workers[e.Index], syscall.Errno(e.A)))
	case watchdog.Skipped:
		r.ended(e.Index, skipped)
	case watchdog.Ended:
		result := Result{PID: r.states[e.Index].pid, Stopped: e.C == 1, Took: time.Duration(e.B)}
		result.fill(syscall.WaitStatus(e.A))
		r.ended(e.Index, result)
	case watchdog.Paused:
		r.paused(e.Index, syscall.Signal(e.A))
	case watchdog.Resumed:
		r.states[e.Index].paused = false
	case watchdog.Left:
		r.left = append(r.left, int(e.A))
	case watchdog.Gone:
		r.gone = true
	}
}

// skipped is the Result of a worker that was stopped before it was started.
var skipped = Result{Signal: syscall.SIGTERM, Stopped: true}

func (r *run) started(e watchdog.Record) {
	i, pid := e.Index, int(e.A)
	s, now, clock := &r.states[i], time.Now(), int64(watchdog.Monotonic())
	s.pid, s.began, s.running = pid, now.Add(time.Duration(e.B-clock)), now.Add(time.Duration(e.C-clock))
	if r.tree.Started != nil {
		r.calls.add(func() { r.tree.Started(i, pid) })
	}
}

// ended notes the result of worker i, and lets the caller know as soon as its last words are in.
func (r *run) ended(i int, result Result) {
	s := &r.states[i]
	if s.ended {
		return
	}
	s.ended = true
	r.live--
	p, until := r.pumps[i], time.Now().Add(pumpWait)
	if p != nil {
		p.end()
	}
	r.calls.add(func() {
		if p != nil {
			result.Stderr = p.text(until)
		}
		result.Outside = r.outside(s.began, result)
		s.result = result
		if r.tree.Ended != nil {
			r.tree.Ended(i, result)
		}
	})
}

// finish lets go of the watchdog, does its work if it did not, and returns what Run returns.
func (r *run) finish() ([]Result, error) {
	r.guard.end()
	r.stopListening()
	err := r.leftovers()
	r.closeStreams()
	return r.results(), err
}

// neverStarted is for a ctx that had ended before anything was started.
func (r *run) neverStarted() ([]Result, error) {
	for i := range r.states {
		r.ended(i, skipped)
	}
	return r.results(), nil
}

// results waits for the last call and returns what they all told.
func (r *run) results() []Result {
	r.calls.wait()
	var results []Result
	for i := range r.states {
		results = append(results, r.states[i].result)
	}
	return results
}

// leftovers kills the tree if the watchdog died before it could, and tells what could not be killed.
func (r *run) leftovers() error {
	if r.gone && len(r.left) == 0 {
		return nil
	}
	if r.gone {
		return &LeftError{named(r.left)}
	}
	statuses := map[int]syscall.WaitStatus{}
	left := sweep(r.spare, func(pid int, s syscall.WaitStatus) { statuses[pid] = s })
	for i := range r.states {
		r.lost(i, statuses)
	}
	switch {
	case len(left) > 0:
		return errors.Join(ErrWatchdog, &LeftError{left})
	case r.aborted:
		return nil
	}
	return ErrWatchdog
}

// lost ends worker i, of whose end the watchdog did not live to tell.
func (r *run) lost(i int, statuses map[int]syscall.WaitStatus) {
	if r.aborted {
		r.ended(i, skipped)
		return
	}
	s := &r.states[i]
	result := Result{PID: s.pid, Signal: syscall.SIGKILL, Stopped: true, Err: ErrWatchdog}
	if status, ok := statuses[result.PID]; ok {
		result.Signal = 0
		result.fill(status)
		result.Took = time.Since(s.began)
	}
	r.ended(i, result)
}

// closeStreams ends what carries the workers' streams. It may be called again.
func (r *run) closeStreams() {
	until := time.Now().Add(pumpWait)
	for _, p := range r.pumps {
		if p != nil {
			p.close(until)
		}
	}
	for _, p := range r.pumps {
		if p != nil {
			p.wait(until)
		}
	}
	for _, f := range r.own {
		f.Close()
	}
	r.own = nil
}
