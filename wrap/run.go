package wrap

import (
	"context"
	"os"
	"time"

	"rdzv/wrap/internal/watchdog"
)

// Run starts the workers of t and returns when the last has ended and nothing of the tree is left; the package comment
// says what ends it, what it then returns, and what is killed. The results are those of t.Workers, in their order.
//
// A program that calls Run becomes the adoptive parent of its orphaned descendants for good. Runs may overlap; only if
// a watchdog dies before its tree does Run take children that this process has got since Run began, by whatever way, for
// orphans of its tree, and kills them.
func Run(ctx context.Context, t Tree) ([]Result, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	r := newRun(&t)
	defer r.calls.wait()
	defer r.closeStreams()
	if ctx.Err() != nil {
		for i := range r.states {
			r.ended(i, skipped)
		}
		return r.results(), nil
	}
	spec, err := r.spec()
	if err != nil {
		return nil, err
	}
	if r.guard, err = startGuard(t.Source != nil); err != nil {
		return nil, err
	}
	defer r.jobControl()()
	r.listen()
	r.handOver(ctx, spec)
	r.supervise(ctx)
	r.guard.end()
	r.stopListening()
	err = r.leftovers()
	r.closeStreams()
	return r.results(), err
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
	unheard bool     // its sentinel does not answer
}

// state is what is known of a worker.
type state struct {
	pid    int
	began  time.Time // just before it was started
	ended  bool
	paused bool   // stopped by a terminal or shell
	result Result // written by its call of Ended
}

func newRun(t *Tree) *run {
	n := len(t.Workers)
	spare, _ := children() // where they cannot be found, sweep will say so
	return &run{
		tree:   t,
		spare:  spare,
		pumps:  make([]*pump, n),
		states: make([]state, n),
		live:   n,
		calls:  newCalls(2 * n),
	}
}

// supervise passes on signals and orders to stop until the watchdog has gone.
func (r *run) supervise(ctx context.Context) {
	ended, deaf, kill, signals := ctx.Done(), r.tree.Deaf, r.tree.Kill, r.tree.Signals
	var overdue <-chan time.Time // set once the tree has been told to end
	for {
		select {
		case e, ok := <-r.guard.events:
			if !ok {
				return
			}
			r.take(e)
			if r.live == 0 && !r.tree.Linger && overdue == nil {
				overdue = r.stop(&Stop{})
			}
		case s, ok := <-signals:
			if !ok {
				signals = nil
				continue
			}
			r.guard.order(watchdog.Record{Kind: watchdog.Signal, A: int64(s)})
		case <-ended:
			ended, overdue = nil, r.stop(stopOf(ctx))
		case <-deaf:
			deaf = nil
			r.guard.order(watchdog.Record{Kind: watchdog.Deaf})
		case <-kill:
			kill, ended, overdue = nil, nil, r.kill()
		case <-overdue:
			_ = r.guard.process.Kill() // it hangs or is stopped; leftovers does its work
		}
	}
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
