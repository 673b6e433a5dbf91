package wrap

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"

	"rdzv/internal/boottime"
	"rdzv/internal/descriptor"
	"rdzv/wrap/internal/holder"
	"rdzv/wrap/internal/tee"
)

// Run starts the workers of t and returns when the last one has ended and nothing of the tree is
// left. The package comment says which events end it, what it then returns and what is killed. The
// results are in the order of t.Workers.
//
// From the first call on, this process is a child subreaper (prctl(2)): it adopts its orphaned
// descendants. Calls of Run may overlap. If a holder dies before its tree has ended, and only then,
// Run takes all children that this process got since Run began for processes of its tree and kills
// them.
func Run(ctx context.Context, t Tree) ([]Result, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	r := newRun(&t)
	defer r.outputs.releaseTails()
	defer r.endCalls()
	if ctx.Err() != nil {
		for i := range r.states {
			r.ended(i, notStarted)
		}
		r.endCalls()
		return r.results, nil
	}
	r.leased = t.Lease.use(true) // before its state is read
	defer t.Lease.drop(r.leased)
	err := r.start()
	if err != nil {
		return nil, err
	}
	defer t.Source.listen(r)()
	r.supervise(ctx)
	r.holder.wait()
	err = r.killLeft()
	r.outputs.close()
	r.endCalls()
	return r.results, err
}

// run is one call of Run.
type run struct {
	tree      *Tree
	holder    *client
	unrelated map[int]bool // children that this process had before
	states    []state      // by worker
	results   []Result     // by worker, set before Tree.Ended is called
	outputs   outputs
	live      int            // number of workers that have not ended
	running   int            // of these, number of those that have started
	calls     chan func()    // of Tree.Started, Dumping, Ended, LogLost and OutputLost
	endCalls  func()         // waits for the last call; then no more can be added
	announced chan struct{}  // delivers when Tree.Dumping has returned
	leased    chan struct{}  // delivers when the lease has changed
	finished  bool           // the holder has reported Finished
	survivors []int          // pids that it has reported before
	terminal  bool           // the workers are in the process group of this process
	endGroups bool           // Stop.Groups
	stops     chan os.Signal // signals of job control, with Tree.JobControl
	// childChanged delivers when the holder may have been stopped or continued.
	childChanged chan os.Signal

	// late delivers when the holder must have ended the tree; nil until it is ordered to.
	late <-chan time.Time

	queue    queue
	phase    phase
	deadline time.Time // end of the phase
	dumpTerm bool      // Stop.DumpStacks
	dumpAll  bool      // Tree.DumpStacks is closed
	dumpAt   time.Time // when SIGABRT is sent at the latest, if it has been announced
	remindAt time.Time // when those that have received another signal get SIGTERM; zero is never
	scanned  time.Time // last search for orphans, or begin of the phase
	sentTerm map[int]bool
	inits    inits
	lease    hold
}

// state is the part of a run for one worker: where its output goes, and how far it has come.
type state struct {
	tees      []*tee.Tee
	chunk     *holder.Chunk // nil without a log
	tail      *tee.Tail     // of stderr, or of stdout and stderr; nil without Worker.Output or Capture
	joined    bool
	mu        *sync.Mutex      // for the next two
	logged    bool             // there is a log, and it has not been given up
	lost      error            // why some of its stdout was not shown, before drained[0] was closed
	drained   [2]chan struct{} // closed when all that the worker itself wrote to a stream was copied
	pid       int
	startedAt time.Time     // shortly before its start; zero if it was not started
	began     time.Duration // the same, by holder.Monotonic
	ended     bool
	suspended bool // stopped by a signal
	byShell   bool // of job control
	delivered bool // it has received a signal to end, not from Run
	signalled bool // Run has ordered a signal to end
	prepared  bool // it has received SIGABRT, or is about to
	announced bool // it is about to receive SIGABRT
}

func (s *state) runs() bool { return !s.startedAt.IsZero() && !s.ended }

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
		announced: make(chan struct{}, n),
		sentTerm:  map[int]bool{},

		stops: make(chan os.Signal, 1), childChanged: make(chan os.Signal, 1),
	}
	for i := range r.states {
		r.states[i].mu = new(sync.Mutex)
	}
	r.outputs = outputs{
		tree: t, states: r.states, screens: map[*os.File]*tee.Screen{},
		call: func(f func()) { r.calls <- f },
		drop: func(i int) {
			if r.holder != nil {
				r.holder.order(holder.Record{Kind: holder.Drop, Index: i})
			}
		},
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

// start opens the outputs of the workers and starts the holder.
func (r *run) start() error {
	c := holder.Config{SameGroup: r.tree.sameGroup(), Until: r.tree.Lease.memory()}
	r.terminal = c.SameGroup
	if r.tree.Owner != nil {
		var err error
		if c.Owner, err = descriptor.Of(r.tree.Owner); err != nil {
			return err
		}
	}
	var err error
	if c.Held, err = r.tree.Held.held(); err != nil {
		return err
	}
	ends := &files{}
	defer ends.close()
	for i, w := range r.tree.Workers {
		args := w.Args
		if len(args) == 0 {
			args = []string{w.Path}
		}
		h := holder.WorkerSpec{
			Path: w.Path, Dir: w.Dir, Args: args, Env: w.Env, CPUs: w.Bind.CPUs, Node: w.Bind.node(),
			Files: [3]int{number(w.Stdin), number(w.Stdout), number(w.Stderr)},
			Pipe:  holder.Null, Log: holder.Null,
		}
		if err := r.outputs.open(i, &h, ends); err != nil {
			r.outputs.close()
			return err
		}
		c.Workers = append(c.Workers, h)
		r.queue.startAt = append(r.queue.startAt, w.StartAt)
	}
	if r.holder, err = startHolder(c); err != nil {
		ends.close()
		r.outputs.close()
		return err
	}
	r.holder.holder.Shared.FrozenFor = int64(r.tree.FrozenLimit)
	r.lease.holder, r.lease.others = r.holder, r.tree.Lease != nil && r.tree.Lease.others
	r.lease.renew(r.tree)
	r.lease.paused, r.lease.pausedAt = r.lease.over(), boottime.Now() // it was stopped before
	return nil
}

// number is the descriptor of a file. It resets the non-blocking mode that Go sets for pipes which
// it has created, and which few programs expect; a mode set by other programs stays.
func number(f *os.File) int {
	if f == nil {
		return holder.Null
	}
	return int(f.Fd())
}

// supervise starts the workers, forwards signals to them, and ends the tree, until the holder has
// ended.
func (r *run) supervise(ctx context.Context) {
	ended, kill, signals := ctx.Done(), r.tree.Kill, r.tree.Signals
	dumpStacks, startNow := r.tree.DumpStacks, r.tree.StartNow
	frozen := r.holder.checkFrozen()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		r.startNext()
		timer.Reset(r.untilTimer())
		select {
		case e, ok := <-r.holder.records:
			if !ok {
				return
			}
			r.handle(e)
			if r.live == 0 && !r.tree.Linger {
				r.stop(ctx)
			}
		case e, ok := <-signals:
			if !ok {
				signals = nil
				continue
			}
			r.signal(e)
		case s := <-r.stops:
			r.forwardStop(s.(syscall.Signal))
		case <-ended:
			ended = nil
			r.stop(ctx)
		case <-startNow:
			startNow = nil
			r.queue.startNow()
		case <-dumpStacks:
			dumpStacks, r.dumpAll = nil, true
			r.announceDump(true)
		case <-r.announced:
			r.dumpStacks()
		case <-kill:
			kill = nil
			r.enter(killing, holder.KillWait)
		case <-r.leased:
			if r.lease.renew(r.tree) {
				r.enter(killing, holder.KillWait)
			}
		case <-r.childChanged:
			frozen = r.holder.childChanged(frozen)
		case <-frozen:
			frozen = r.holder.checkFrozen()
		case <-timer.C:
			r.scanned = time.Now()
			r.step(true)
			continue
		case <-r.late:
			r.holder.kill() // it hangs; killLeft kills the tree
		}
		r.step(false)
	}
}

// step does what the time and the phase require. For scan see advance.
func (r *run) step(scan bool) {
	now := time.Now()
	if !r.dumpAt.IsZero() && !now.Before(r.dumpAt) {
		r.dumpStacks()
	}
	r.checkLease()
	r.advance(now, scan)
}

// untilTimer is the time until the next start of a worker or, while the tree is being stopped,
// until the next search for orphans: the kernel reports the end of a child but not that the holder
// has adopted one. While SIGABRT is announced it is the time until that, else until the next check
// of the lease.
func (r *run) untilTimer() time.Duration {
	wait := r.lease.untilCheck()
	switch {
	case r.phase == killing:
		wait = time.Hour // the holder kills
	case r.phase != atWork:
		wait = time.Until(r.scanned.Add(10 * time.Millisecond))
	case !r.dumpAt.IsZero():
		wait = min(wait, time.Until(r.dumpAt))
	case r.queue.next < len(r.states) && r.queue.ordered < maxOrdered && r.lease.stopped == nil:
		wait = min(wait, r.queue.untilNext())
	}
	r.lease.sleep(wait)
	return wait
}
