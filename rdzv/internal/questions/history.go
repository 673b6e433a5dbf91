package questions

import (
	"sync"
	"time"
)

// history are the revisions of questions. What is older than a question that an agent has read it
// does not need, also if it reconnects. Every agent has read a question that it has answered, and
// one that was put some time ago: an agent whose connection is silent for that long is lost.
type history struct {
	mu   sync.Mutex
	list []question
}

type question struct {
	revision int64
	at       time.Time
}

// add adds a question, and returns the revision of the last one that is so old; 0 if there is none.
func (h *history) add(revision int64, at time.Time, age time.Duration) (old int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, question{revision, at})
	for len(h.list) > 0 && at.Sub(h.list[0].at) >= age {
		old, h.list = h.list[0].revision, h.list[1:]
	}
	return old
}
