package runner

import (
	"sync"
	"syscall"
	"time"

	"rdzv/internal/boottime"
	"rdzv/wrap"
)

// call is a Run in the agent. The goroutine that reads from the runner has results and the rest
// until done has been delivered or the runner is lost.
type call struct {
	tree    *wrap.Tree
	workers []progress
	results []wrap.Result
	calls   chan func() // of the functions of tree
	done    chan doneMessage
	leased  <-chan struct{} // delivers when the runner is to read the lease
	order   func(kind)
}

// progress is how far a worker is.
type progress struct {
	pid       int
	startedAt time.Duration // by package boottime
	ended     bool
}

// newCall is for a tree whose runner takes orders with order. finish waits for the calls of
// functions of the tree; then there are no others.
func newCall(t *wrap.Tree, order func(kind)) (c *call, finish func()) {
	n := len(t.Workers)
	c = &call{
		tree: t, workers: make([]progress, n), results: make([]wrap.Result, n),
		calls: make(chan func(), 8*n+8), done: make(chan doneMessage, 1), order: order,
	}
	var calling sync.WaitGroup
	calling.Go(func() {
		for f := range c.calls {
			f()
		}
	})
	return c, func() { close(c.calls); calling.Wait() }
}

// take handles what the runner has sent.
func (c *call) take(f *frame) error {
	switch f.kind {
	case started:
		var m startMessage
		err := f.decode(&m)
		if err == nil && c.has(m.Worker) {
			c.started(m.Worker, m.PID)
		}
		return err
	case ended:
		var m endMessage
		err := f.decode(&m)
		if err == nil && c.has(m.Worker) {
			c.ended(m.Worker, m.result())
		}
		return err
	case dumping:
		var dumps []wrap.Dump
		err := f.decode(&dumps)
		c.calls <- func() {
			if c.tree.Dumping != nil {
				c.tree.Dumping(dumps)
			}
			c.order(dumped)
		}
		return err
	case logLost, outputLost:
		var m lossMessage
		err := f.decode(&m)
		if err == nil && c.has(m.Worker) {
			c.lost(f.kind, &m)
		}
		return err
	case treeEnded:
		var m doneMessage
		err := f.decode(&m)
		if err == nil {
			c.done <- m
		}
		return err
	}
	return nil
}

func (c *call) has(i int) bool { return i >= 0 && i < len(c.workers) }

func (c *call) started(i, pid int) {
	c.workers[i].pid, c.workers[i].startedAt = pid, boottime.Now()
	if f := c.tree.Started; f != nil {
		c.calls <- func() { f(i, pid) }
	}
}

func (c *call) ended(i int, r wrap.Result) {
	if c.workers[i].ended {
		return
	}
	c.workers[i].ended, c.results[i] = true, r
	w := &c.tree.Workers[i]
	if w.Line != nil && w.Stderr != nil && len(r.Stderr) > 0 {
		w.Line.Wrote(string(r.Stderr))
	}
	if f := c.tree.Ended; f != nil {
		c.calls <- func() { f(i, r) }
	}
}

func (c *call) lost(k kind, m *lossMessage) {
	i, reason, bytes, stream := m.Worker, m.Reason.error(), m.Bytes, string(m.Stream)
	if f := c.tree.LogLost; f != nil && k == logLost {
		c.calls <- func() { f(i, reason, bytes) }
	}
	if f := c.tree.OutputLost; f != nil && k == outputLost {
		c.calls <- func() { f(i, stream, reason, bytes) }
	}
}

// endAll ends the workers that have not ended: their runner is lost.
func (c *call) endAll() {
	for i := range c.workers {
		w := c.workers[i]
		r := wrap.Result{PID: w.pid, Signal: syscall.SIGKILL, Stopped: true, Err: ErrLost}
		if w.pid != 0 {
			r.Took = boottime.Now() - w.startedAt
		}
		c.ended(i, r)
	}
}
