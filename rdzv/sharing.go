package rdzv

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/record"
)

// ShareOnce is how long after a signal was shared the same signal counts as that one.
const ShareOnce = 2 * time.Second

// SharedSignal is a signal that one agent has received and that all workers are to receive, once.
type SharedSignal struct {
	Signal int    `json:"signal"`
	By     string `json:"by"` // ID of the agent
	// Direct says that the agent's workers have received it too: what has sent it to them may also
	// send it to those of other agents.
	Direct bool `json:"direct,omitempty"`
	// Age is the time between when the agent received it and when it wrote this.
	Age time.Duration `json:"age"`
	Own bool          `json:"-"` // this agent is the one
}

// sharing shares signals to processes, and is what this agent has seen of that.
type sharing struct {
	store *kv.Store
	keys  keys.Attempt
	self  string           // ID of this agent
	lease clientv3.LeaseID // of the job

	c    chan SharedSignal
	once time.Duration // ShareOnce
	mu   sync.Mutex
	last map[int]lastShare // by signal
}

// lastShare is when an agent received a signal that was shared the last time, by the clock of this
// one, and the revision of the store.
type lastShare struct {
	at       time.Time
	revision int64
}

// maxShared is how many shared signals wait for SharedSignals.
const maxShared = 16

func newSharing(store *kv.Store, k keys.Attempt, self string, lease clientv3.LeaseID) *sharing {
	return &sharing{
		store: store, keys: k, self: self, lease: lease,
		c: make(chan SharedSignal, maxShared), once: ShareOnce, last: map[int]lastShare{},
	}
}

// share tells all agents of a signal that this agent received, see Session.ShareSignal.
func (s *sharing) share(ctx context.Context, signal int, at time.Time, direct bool) error {
	last := s.lastOf(signal)
	if at.Sub(last.at) < s.once {
		return nil
	}
	// If several agents have received it, the first one writes it: the others have not seen that.
	key := s.keys.Shares().Of(strconv.Itoa(signal))
	unseen := clientv3.Compare(clientv3.ModRevision(key), "=", last.revision)
	put := clientv3.OpPut(key, record.Encode(SharedSignal{
		Signal: signal, By: s.self, Direct: direct, Age: time.Since(at),
	}), clientv3.WithLease(s.lease))
	_, err := s.store.Commit(ctx, []clientv3.Cmp{unseen}, []clientv3.Op{put}, nil)
	if err != nil {
		return fmt.Errorf("cannot share signal %d: %w", signal, err)
	}
	return nil
}

func (s *sharing) lastOf(signal int) lastShare {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[signal]
}

// take notes a signal that was shared. If nobody receives them, more are ignored.
func (s *sharing) take(value []byte, revision int64) error {
	signal, err := record.Decode[SharedSignal](value)
	if err != nil {
		return fmt.Errorf("cannot read a shared signal: %w", err)
	}
	signal.Own = signal.By == s.self
	s.mu.Lock()
	s.last[signal.Signal] = lastShare{time.Now().Add(-signal.Age), revision}
	s.mu.Unlock()
	select {
	case s.c <- signal:
	default:
	}
	return nil
}
