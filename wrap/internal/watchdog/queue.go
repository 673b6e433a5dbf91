package watchdog

import (
	"syscall"
	"time"
)

// queue holds the workers that have not been started. They are started one after the other, by the
// thread that carries out the agent's orders, which it does in between.
type queue struct {
	spec   []Worker
	next   int    // index of the first of them
	group  int    // their process group
	files  []int  // the descriptors of all workers
	missed uint64 // signals to send to each of them when it has started: bit n-1 is signal n
}

// untilNext is how long the first worker must still wait.
func (q *queue) untilNext() time.Duration { return max(0, q.spec[0].StartAt-Monotonic()) }

// startNow lets no worker wait any longer.
func (q *queue) startNow() {
	for i := range q.spec {
		q.spec[i].StartAt = 0
	}
}

// pop removes the first worker. After the last one it closes the descriptors, so that pipes end
// when the workers do.
func (q *queue) pop() {
	if q.spec, q.next = q.spec[1:], q.next+1; len(q.spec) > 0 {
		return
	}
	for _, f := range q.files {
		syscall.Close(f)
	}
}

// startNext starts the next worker if it is time.
func (w *watchdog) startNext() {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := &w.queue
	if len(q.spec) == 0 || q.untilNext() > 0 || w.lease.over() {
		return
	}
	w.startWorker(q.next, q.spec[0], q.group, q.files)
	q.pop()
	w.changed.Broadcast()
}

// skipAll reports that the remaining workers will not be started.
func (w *watchdog) skipAll() {
	for q := &w.queue; len(q.spec) > 0; q.pop() {
		tell(Record{Kind: Skipped, Index: q.next})
	}
	w.changed.Broadcast()
}
