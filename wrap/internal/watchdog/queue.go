package watchdog

import (
	"syscall"
	"time"
)

// queue holds the workers that have not been started. They are started one after the other, by the
// thread that carries out the agent's orders, which it does in between.
type queue struct {
	spec   Spec   // the workers
	next   int    // index of the first of them
	group  int    // their process group
	files  []int  // the descriptors of all workers
	uses   []int  // how many streams of these workers each of files is
	missed uint64 // signals to send to each of them when it has started: bit n-1 is signal n
}

func newQueue(spec Spec, group int, files []int) queue {
	q := queue{spec: spec, group: group, files: files, uses: make([]int, len(files))}
	for _, s := range spec {
		for _, at := range s.Files {
			if at != Null {
				q.uses[at]++
			}
		}
	}
	return q
}

// untilNext is how long the first worker must still wait.
func (q *queue) untilNext() time.Duration { return max(0, q.spec[0].StartAt-Monotonic()) }

// pop removes the first worker. It closes the descriptors that no other one needs, so that pipes
// end when the workers do.
func (q *queue) pop() {
	for _, at := range q.spec[0].Files {
		if at == Null {
			continue
		}
		if q.uses[at]--; q.uses[at] == 0 {
			syscall.Close(q.files[at])
		}
	}
	q.spec, q.next = q.spec[1:], q.next+1
}

// startNext starts the next worker if it is time.
func (w *watchdog) startNext() {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := &w.queue
	if len(q.spec) == 0 || q.untilNext() > 0 {
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
