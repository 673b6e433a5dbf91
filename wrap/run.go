package wrap

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/wrap/internal/tee"
	"rdzv/wrap/internal/watchdog"
)

// Run starts the workers of t and returns when the last one has ended and nothing of the tree is
// left. The package comment says which events end it, what it then returns and what is killed. The
// results are in the order of t.Workers.
//
// From the first call on, this process is a child subreaper (prctl(2)): it adopts its orphaned
// descendants. Calls of Run may overlap. If a watchdog dies before its tree has ended, and only
// then, Run takes all children that this process got since Run began for processes of its tree and
// kills them.
func Run(ctx context.Context, t Tree) ([]Result, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	r := newRun(&t)
	defer r.releaseTails()
	defer r.endCalls()
	defer r.closeStreams()
	if ctx.Err() != nil {
		for i := range r.states {
			r.ended(i, notStarted)
		}
		r.endCalls()
		return r.results, nil
	}
	r.leased = t.Lease.use() // before its state is read
	spec, err := r.spec()
	if err != nil {
		return nil, err
	}
	if r.guard, err = startGuard(t.Source != nil); err != nil {
		return nil, err
	}
	if t.JobControl {
		caught := make(chan os.Signal, 1) // not read: the watchdog reports which workers stop
		catch(caught, stopSignals)
		defer signal.Stop(caught)
	}
	if t.Source != nil {
		r.reports = t.Source.subscribe(r.guard, r.queries, len(t.Workers))
	}
	r.handOver(ctx, spec)
	r.supervise(ctx)
	r.guard.wait()
	r.reports.end()
	err = r.killLeft()
	r.closeStreams()
	r.endCalls()
	return r.results, err
}

// run is one call of Run.
type run struct {
	tree      *Tree
	guard     *guard
	unrelated map[int]bool // children that this process had before
	streams   []*os.File   // the descriptors that the spec refers to
	own       []*os.File   // those of them that Run has opened
	pumps     []*pump
	states    []state         // by worker
	results   []Result        // by worker, set before Tree.Ended is called
	live      int             // number of workers that have not ended
	aborted   bool            // ctx ended before the watchdog had received its workers
	dumping   []Dump          // for the next call of Tree.Dumping
	calls     chan func()     // of Tree.Started, Dumping, Ended, LogLost and OutputLost
	endCalls  func()          // waits for the last call; then no more can be added
	leased    <-chan struct{} // delivers when the lease has changed
	leaseOver bool            // the watchdog ends the tree because of that
	finished  bool            // the watchdog has reported Finished
	survivors []int           // pids that it has reported before
	reports   *subscription   // to the sentinel's reports; nil without Tree.Source
	queries   chan struct{}   // requests by Tree.Source for a watchdog.QueryReply
}

// state is what Run knows about a worker.
type state struct {
	pump      *pump     // nil without Worker.Capture
	tail      *tee.Tail // of stderr, or of stdout and stderr; nil without Worker.Output
	joined    bool
	logged    bool             // there is a log, and it has not been given up
	drained   [2]chan struct{} // closed when all that the worker itself wrote to a stream was copied
	lost      error            // why some of its stdout was not shown, before drained[0] was closed
	pid       int
	startedAt time.Time // shortly before its start; zero if it was not started
	ended     bool
	suspended bool // stopped by a terminal or shell
}

func newRun(t *Tree) *run {
	n := len(t.Workers)
	unrelated, _ := children() // if this fails, so does a later sweep, which reports it
	r := &run{
		tree:      t,
		unrelated: unrelated,
		states:    make([]state, n),
		results:   make([]Result, n),
		live:      n,
		calls:     make(chan func(), 7*n),
		queries:   make(chan struct{}, maxSignals),
	}
	// The calls are made in a goroutine of their own, so that they do not delay the supervision.
	var calling sync.WaitGroup
	calling.Go(func() {
		for call := range r.calls {
			call()
		}
	})
	r.endCalls = sync.OnceFunc(func() {
		close(r.calls)
		calling.Wait()
	})
	return r
}

// outputWait is how long the watchdog may copy what is left in the pipes when nothing of the tree
// is left: it waits for slow readers, but not for those that do not read.
const outputWait = time.Minute

// supervise forwards signals and orders to the watchdog and handles its records until it has ended.
func (r *run) supervise(ctx context.Context) {
	ended, kill, signals := ctx.Done(), r.tree.Kill, r.tree.Signals
	dumpStacks, startNow := r.tree.DumpStacks, r.tree.StartNow
	if limit := r.tree.FrozenLimit; limit > 0 {
		r.guard.order(watchdog.Record{Kind: watchdog.LimitFreeze, A: int64(limit)})
	}
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGCHLD)
	defer signal.Stop(changed)
	frozen := r.guard.checkFrozen()
	var late <-chan time.Time // set when the tree has been ordered to end
	for {
		select {
		case e, ok := <-r.guard.records:
			if !ok {
				return
			}
			r.handle(e)
			if e.Kind == watchdog.Finished {
				late = time.After(outputWait)
			}
			if r.live == 0 && !r.tree.Linger && late == nil {
				late = r.guard.stop(ctx, r.tree.Grace)
			}
		case e, ok := <-signals:
			if !ok {
				signals = nil
				continue
			}
			r.guard.signal(e)
		case <-r.queries:
			r.guard.order(watchdog.Record{Kind: watchdog.Query})
		case <-ended:
			ended, late = nil, r.guard.stop(ctx, r.tree.Grace)
		case <-startNow:
			startNow = nil
			r.guard.order(watchdog.Record{Kind: watchdog.StartNow})
		case <-dumpStacks:
			dumpStacks = nil
			r.guard.order(watchdog.Record{Kind: watchdog.DumpStacks})
		case <-kill:
			kill, ended = nil, nil
			r.guard.order(watchdog.Record{Kind: watchdog.Kill})
			late = time.After(watchdog.KillWait + lateMargin)
		case <-r.leased:
			if r.orderLease() {
				kill, ended = nil, nil
				late = time.After(watchdog.KillWait + lateMargin)
			}
		case <-changed:
			frozen = r.guard.childChanged(frozen)
		case <-frozen:
			frozen = r.guard.checkFrozen()
		case <-late:
			_ = r.guard.process.Kill() // it hangs; killLeft kills the tree
		}
	}
}
