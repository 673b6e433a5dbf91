package wrap

import (
	"os"
	"sync"
	"time"

	"rdzv/wrap/internal/frames"
)

// call is a Run in the agent. The goroutine that reads from the runner has results and the rest
// until done has been delivered or the runner is lost.
type call struct {
	runner   *Runner
	tree     *Tree
	workers  []progress
	results  []Result    // by worker, set before Tree.Ended is called
	calls    chan func() // of the functions of tree
	finish   func()      // waits for the last of them; then no more can be added
	done     chan doneMessage
	stops    chan os.Signal // signals of job control, with Tree.JobControl
	begun    chan struct{}  // closed when terminal is known
	terminal bool           // see begunMessage
}

// progress is how far a worker is.
type progress struct {
	pid       int
	startedAt time.Time // zero if it was not started
	ended     bool
}

func newCall(r *Runner, t *Tree) *call {
	n := len(t.Workers)
	c := &call{
		runner: r, tree: t, workers: make([]progress, n), results: make([]Result, n),
		calls: make(chan func(), 8*n+8), done: make(chan doneMessage, 1),
		stops: make(chan os.Signal, 1), begun: make(chan struct{}),
	}
	for i := range t.Workers {
		t.Workers[i].Line.follow(c)
	}
	var calling sync.WaitGroup
	calling.Go(func() {
		for f := range c.calls {
			f()
		}
	})
	c.finish = func() {
		close(c.calls)
		calling.Wait()
		for i := range t.Workers {
			t.Workers[i].Line.leave(c)
			t.Workers[i].LastOutput.end()
		}
	}
	return c
}

// order sends an order without a body.
func (c *call) order(kind uint8) { _ = c.runner.order(kind, nil) }

// take handles what the runner has sent.
func (c *call) take(f *frames.Frame) (err error) {
	switch f.Kind {
	case treeBegun:
		var m begunMessage
		if err = f.Decode(&m); err == nil {
			c.terminal = m.Terminal
			close(c.begun)
		}
	case workerStarted:
		var m startMessage
		if err = f.Decode(&m); err == nil && c.has(m.Worker) {
			c.tree.Workers[m.Worker].LastOutput.begin(m.AllRead)
			c.started(m)
		}
	case workerEnded:
		var m endMessage
		if err = f.Decode(&m); err == nil && c.has(m.Worker) {
			m.Result.Err, m.Result.Unread = m.Err.error(), m.Unread.error()
			c.wrote(m.Output)
			c.tree.Workers[m.Worker].Line.end(c, m.Output, m.Result.Stderr)
			c.ended(m.Worker, m.Result)
		}
	case dumpsFollow:
		var dumps []Dump
		err = f.Decode(&dumps)
		c.calls <- func() {
			if c.tree.Dumping != nil {
				c.tree.Dumping(dumps)
			}
			c.order(dumped)
		}
	case logLost, outputLost:
		var m lossMessage
		if err = f.Decode(&m); err == nil && c.has(m.Worker) {
			c.lost(f.Kind, &m)
		}
	case wrote:
		var m outputMessage
		if err = f.Decode(&m); err == nil && c.has(m.Worker) {
			c.wrote(m)
		}
	case allSuspended:
		c.suspend()
	case treeEnded:
		var m doneMessage
		if err = f.Decode(&m); err == nil {
			for _, o := range m.Output {
				if c.has(o.Worker) {
					c.wrote(o)
				}
			}
			c.runner.unshown.Store(m.Unshown || c.runner.unshown.Load())
			c.done <- m
		}
	}
	return err
}

func (c *call) has(i int) bool { return i >= 0 && i < len(c.workers) }

func (c *call) started(m startMessage) {
	c.workers[m.Worker].pid, c.workers[m.Worker].startedAt = m.PID, m.At.time()
	if f := c.tree.Started; f != nil {
		c.calls <- func() { f(m.Worker, m.PID) }
	}
}

func (c *call) ended(i int, r Result) {
	if c.workers[i].ended {
		return
	}
	c.workers[i].ended = true
	startedAt := c.workers[i].startedAt
	c.calls <- func() {
		if r.Err == nil {
			r.GroupSignal = c.groupSignal(startedAt, r)
		}
		c.results[i] = r
		if c.tree.Ended != nil {
			c.tree.Ended(i, r)
		}
	}
}

// wrote takes over what is known of the output of a worker.
func (c *call) wrote(m outputMessage) {
	w := &c.tree.Workers[m.Worker]
	w.LastOutput.set(m)
	w.Line.set(c, m)
}

func (c *call) lost(kind uint8, m *lossMessage) {
	reason := m.Reason.error()
	if f := c.tree.LogLost; f != nil && kind == logLost {
		c.calls <- func() { f(m.Worker, reason, m.Bytes) }
	}
	if f := c.tree.OutputLost; f != nil && kind == outputLost {
		c.calls <- func() { f(m.Worker, m.Stream, reason, m.Bytes) }
	}
}
