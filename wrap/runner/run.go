package runner

import (
	"context"
	"errors"
	"syscall"
	"time"

	"rdzv/wrap"
)

// Run is wrap.Run in the task. What is different:
//   - Worker.Stdin, Stdout and Stderr are those of the task if they are not nil, whichever file
//     they are.
//   - Worker.Line learns of what a worker wrote when it has ended.
//   - Tree.Source is not used: the runner has its own. It sets Result.GroupSignal, sends signals
//     that are not for the agent to the workers, and knows which signals these have received when
//     ctx ends with a *wrap.Stop. Delivered and At are for the workers of this process: the runner
//     then waits up to 1 s for its own signal.
//   - Tree.Owner is not used. A renewal of Tree.Lease wakes no runner.
//   - If the runner is lost, its workers end with ErrLost, which is also the error of Run.
func (t *Task) Run(ctx context.Context, tree wrap.Tree) ([]wrap.Result, error) {
	if len(tree.Workers) == 0 {
		return nil, errors.New("cannot run a tree: no workers")
	}
	c, finish := newCall(&tree, func(k kind) { _ = t.order(k, nil) })
	defer finish()
	if ctx.Err() != nil {
		for i := range c.workers {
			c.ended(i, wrap.Result{Signal: syscall.SIGTERM, Stopped: true})
		}
		return c.results, nil
	}
	last, file, err := newLastOutputs(len(tree.Workers))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	defer last.close(tree.Workers)
	last.follow(tree.Workers)
	s, files, err := specOf(&tree, file)
	if err != nil {
		return nil, err
	}
	var unlease func()
	c.leased, unlease = tree.Lease.Changes() // before the runner reads it
	defer unlease()
	t.setCall(c)
	defer t.setCall(nil)
	if err := t.order(runTree, s, files...); err != nil {
		return nil, err
	}
	return t.supervise(ctx, c)
}

func (t *Task) setCall(c *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.call = c
}

// lateMargin is how much longer than its grace a runner may take to end its tree, with all that
// package wrap does then, before it is killed.
const lateMargin = 10 * time.Second

// supervise tells the runner what it is to do until it has ended, or is lost.
func (t *Task) supervise(ctx context.Context, c *call) ([]wrap.Result, error) {
	tree := c.tree
	ended, signals := ctx.Done(), tree.Signals
	now, dump, kill := tree.StartNow, tree.DumpStacks, tree.Kill
	var late <-chan time.Time
	for {
		select {
		case m := <-c.done:
			return c.returned(m)
		case <-t.lost:
			return c.abandoned()
		case e, ok := <-signals:
			if !ok {
				signals = nil
				continue
			}
			_ = t.order(sendSignal, messageOf(e))
		case <-ended:
			ended, late = nil, time.After(tree.Grace+lateMargin)
			_ = t.order(stopTree, stopFor(context.Cause(ctx)))
		case <-kill:
			kill, late = nil, time.After(lateMargin)
			_ = t.order(killTree, nil)
		case <-now:
			now = nil
			_ = t.order(startNow, nil)
		case <-dump:
			dump = nil
			_ = t.order(dumpStacks, nil)
		case <-c.leased:
			_ = t.order(leaseChanged, nil)
		case <-late: // it hangs or is stopped
			t.kill()
		}
	}
}

// stopFor is the order that the cause of the end of Run's ctx means.
func stopFor(cause error) stopOrder {
	s, ok := errors.AsType[*wrap.Stop](cause)
	if !ok {
		return stopOrder{}
	}
	return stopOrder{Delivered: s.Delivered, Groups: s.Groups, DumpStacks: s.DumpStacks}
}

// returned returns the results of Task.Run when Run has returned in the runner.
func (c *call) returned(m doneMessage) ([]wrap.Result, error) {
	if !m.Ran {
		return nil, m.Err.error()
	}
	return c.results, m.Err.error()
}

// abandoned returns the results of Task.Run when the runner is lost: workers that had not ended by
// then have ErrLost.
func (c *call) abandoned() ([]wrap.Result, error) {
	select {
	case m := <-c.done: // it was lost after that
		return c.returned(m)
	default:
	}
	c.endAll()
	return c.results, ErrLost
}

// ErrLost is the error of workers whose runner has been killed, or was stopped for too long.
// errors.Is takes it for wrap.ErrHolder, too.
var ErrLost error = lost{}

type lost struct{}

func (lost) Error() string        { return "the runner died" }
func (lost) Is(target error) bool { return target == wrap.ErrHolder }
