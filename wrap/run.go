package wrap

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/go-multierror"
	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
)

// Run starts the workers of t and returns when the last one has ended and nothing of the tree is
// left. The package comment says which events end it, what it then returns and what is killed. The
// results are in the order of t.Workers.
//
// From the first call on, this process is a child subreaper (prctl(2)): it adopts its orphaned
// descendants. Calls of Run may overlap. If a runner dies before its tree has ended, and only then,
// Run takes all children that this process got since Run began for processes of its tree and kills
// them.
func Run(ctx context.Context, t Tree) ([]Result, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	r, err := StartRunner()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.Run(ctx, t)
}

// Run is the function Run with this runner. Tree.Source and Tree.Signals are about the signals to
// its parent, which may be another process than this one.
func (r *Runner) Run(ctx context.Context, t Tree) ([]Result, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	c := newCall(r, &t)
	if r.process != nil {
		mode := terminalMode(t.Workers)
		defer func() { restoreMode(mode, c.results) }() // when they are complete
	}
	defer c.finish()
	if ctx.Err() != nil {
		for i := range c.workers {
			c.ended(i, notStarted)
		}
		return c.results, nil
	}
	leased := t.Lease.use() // before its state is read
	defer t.Lease.drop(leased)
	if r.process != nil {
		r.process.BeginTree()
		defer r.process.EndTree()
	}
	defer t.Source.listen(c)()
	r.setCall(c)
	defer r.setCall(nil)
	m, files := messageOf(&t)
	if err := r.order(runTree, m, files...); err != nil {
		return nil, err
	}
	return r.supervise(ctx, c, leased)
}

func (r *Runner) setCall(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.call = c
}

// lateMargin is how much longer than its grace a runner may take to end its tree, with all that it
// does then, before it is killed.
const (
	lateMargin = 10 * time.Second
	lateAgain  = 2 * time.Second
)

// supervise tells the runner what it is to do until its tree has ended, or it is lost.
func (r *Runner) supervise(ctx context.Context, c *call, leased <-chan struct{}) ([]Result, error) {
	t := c.tree
	done, signals := ctx.Done(), t.Signals
	now, dump, kill := t.StartNow, t.DumpStacks, t.Kill
	var late <-chan time.Time
	lates := 0
	for {
		select {
		case m := <-c.done:
			return c.returned(m)
		case <-r.lost:
			return c.abandoned()
		case e, ok := <-signals:
			if !ok {
				signals = nil
				continue
			}
			_ = r.order(sendSignal, signalOf(e))
		case s := <-c.stops:
			_ = r.order(sendSignal, signalMessage{Signal: s.(syscall.Signal), Groups: true})
		case <-done:
			done, late = nil, time.After(t.Grace+lateMargin)
			_ = r.order(stopTree, stopFor(context.Cause(ctx)))
		case <-kill:
			kill, late = nil, time.After(lateMargin)
			_ = r.order(killTree, nil)
		case <-now:
			now = nil
			_ = r.order(startNow, nil)
		case <-dump:
			dump = nil
			_ = r.order(dumpStacks, nil)
		case <-leased:
			_ = r.order(setLimit, t.Lease.limit())
		case <-late:
			switch lates++; lates {
			case 1: // both may have been stopped until now
				late = time.After(lateAgain)
			case 2: // it hangs
				r.kill()
				late = time.After(lateMargin)
			default: // in the kernel, as in a write to a log
				r.conn.Close()
				<-r.unread
				return c.abandoned()
			}
		}
	}
}

// stopFor is the order that the cause of the end of Run's ctx means.
func stopFor(cause error) stopOrder {
	s, ok := errors.AsType[*Stop](cause)
	if !ok {
		return stopOrder{}
	}
	at := s.At
	if s.Delivered != 0 && at.IsZero() {
		at = time.Now()
	}
	return stopOrder{s.Delivered, instantOf(at), s.Groups, s.DumpStacks}
}

// returned returns the results of Run when nothing of the tree is left.
func (c *call) returned(m doneMessage) ([]Result, error) {
	if m.Ends {
		select {
		case <-c.runner.lost: // another Run is to see that
		case <-time.After(lateAgain):
		}
	}
	if !m.Ran {
		return nil, m.Err.error()
	}
	return c.results, m.Err.error()
}

// abandoned returns the results of Run when the runner is lost: workers that had not ended by then
// have ErrRunner.
func (c *call) abandoned() ([]Result, error) {
	select {
	case m := <-c.done: // it was lost after that
		return c.returned(m)
	default:
	}
	statuses, err := c.runner.left()
	for i := range c.workers {
		w := &c.workers[i]
		result := Result{PID: w.pid, Signal: syscall.SIGKILL, Stopped: true, Err: ErrRunner}
		if status, ok := statuses[w.pid]; ok {
			result.Signal = 0
			result.setStatus(status)
		}
		if w.pid != 0 {
			result.Took = time.Since(w.startedAt)
		}
		c.ended(i, result)
	}
	if err != nil {
		return c.results, multierror.Append(&multierror.Error{ErrorFormat: oneLineEach}, ErrRunner, err)
	}
	return c.results, ErrRunner
}

// left is what is known of the processes that the runner has left: the statuses of those that have
// ended, and an error about those that have not.
func (r *Runner) left() (map[int]syscall.WaitStatus, error) {
	p := r.process
	if p == nil {
		return nil, nil
	}
	select {
	case <-p.Done:
	default: // it hangs in the kernel
		return nil, nil
	}
	switch {
	case len(p.Left) > 0:
		return p.Statuses, cannotKill(named(p.Left))
	default:
		return p.Statuses, p.Err
	}
}

// listen makes the signals of job control arrive at a call until stop. Without a source, nil, they
// are caught for this call alone.
func (s *Source) listen(c *call) (stop func()) {
	if s != nil {
		s.add(c)
		return func() { s.remove(c) }
	}
	if c.tree.JobControl && c.runner.process != nil {
		catch(c.stops, stopSignals)
	}
	return func() { signal.Stop(c.stops) }
}

// suspend stops this process if a terminal or a shell has stopped all running workers, and they
// have not been continued since. It returns after SIGCONT.
func (c *call) suspend() {
	if c.runner.process == nil || !c.tree.JobControl || !underShell(os.Getpid()) {
		return
	}
	for i := range c.workers {
		if w := &c.workers[i]; w.pid != 0 && !w.ended && !procfs.IsStopped(procfs.System, w.pid) {
			return
		}
	}
	_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
}
