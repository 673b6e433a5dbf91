// Package signals follows the keys of an attempt that all its agents watch.
package signals

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/record"
)

// Handlers are called when a signal has arrived, one after another in the order of the store. They
// must return soon.
type Handlers struct {
	Verdict func(*record.Verdict) // how the attempt has ended
	Left    func()                // this agent may leave the job
	// Question has a question to all agents. Its calls run at the same time, until Close.
	Question func(value []byte)
	Invalid  func(error) // a signal cannot be read
	Lost     func(error) // the store has ended the watch for good
}

// Signals has the values of an attempt's signals that an agent has read, and lets it wait for them.
// Those that are not kept here, such as questions, are only passed to the Handlers.
type Signals struct {
	World   Signal[record.World]
	Exports Signal[record.Exports] // set before World, if at all
	Release Signal[record.HeadStartOver]
	Settled Signal[record.Settled]

	verdict   Signal[record.Verdict]
	verdictAt atomic.Pointer[time.Time] // when it arrived; set before verdict

	store    *kv.Store
	keys     keys.Attempt
	self     string // ID of this agent
	handlers Handlers
	stop     context.CancelFunc // of the watch
	running  sync.WaitGroup
}

// New are the signals of an attempt to an agent.
func New(store *kv.Store, k keys.Attempt, self string, h Handlers) *Signals {
	return &Signals{
		World: newSignal[record.World](), Exports: newSignal[record.Exports](),
		Release: newSignal[record.HeadStartOver](), Settled: newSignal[record.Settled](),
		verdict: newSignal[record.Verdict](),
		store:   store, keys: k, self: self, handlers: h, stop: func() {},
	}
}

// Close stops to follow the signals.
func (s *Signals) Close() {
	s.stop()
	s.running.Wait()
}

// Reported is the verdict that was written first, nil if there is none.
func (s *Signals) Reported() *record.Verdict { return s.verdict.Load() }

// Verdict is how the attempt has ended, nil while it has not. When all have settled it may be
// another one than the one that was written first.
func (s *Signals) Verdict() *record.Verdict {
	if all := s.Settled.Load(); all != nil && all.Cause != nil {
		return all.Cause
	}
	return s.verdict.Load()
}

// VerdictAt is when the verdict arrived. There must be one.
func (s *Signals) VerdictAt() time.Time { return *s.verdictAt.Load() }

// apply takes a signal if it is the first one of its key, a question, or a signal to processes.
func (s *Signals) apply(e *clientv3.Event) error {
	key, value, k := string(e.Kv.Key), e.Kv.Value, s.keys
	if e.Type != clientv3.EventTypePut {
		return nil
	}
	switch key {
	case k.World():
		return s.World.take(key, value)
	case k.Exports():
		return s.Exports.take(key, value)
	case k.Verdict():
		return s.takeVerdict(key, value)
	case k.Left().Of(s.self):
		s.handlers.Left()
	case k.Release():
		return s.Release.take(key, value)
	case k.Settled():
		return s.Settled.take(key, value)
	case k.Question():
		s.running.Go(func() { s.handlers.Question(value) })
	}
	return nil
}

func (s *Signals) takeVerdict(key string, value []byte) error {
	if s.verdict.Load() != nil {
		return nil
	}
	s.verdictAt.CompareAndSwap(nil, new(time.Now()))
	err := s.verdict.take(key, value)
	if err == nil {
		s.handlers.Verdict(s.Verdict())
	}
	return err
}

// Signal is a value that is put once.
type Signal[T any] struct {
	value atomic.Pointer[T]
	taken chan struct{} // closed when there is a value
}

func newSignal[T any]() Signal[T] { return Signal[T]{taken: make(chan struct{})} }

// Load returns the value, nil if there is none yet.
func (s *Signal[T]) Load() *T { return s.value.Load() }

// Done returns a channel that is closed when there is a value.
func (s *Signal[T]) Done() <-chan struct{} { return s.taken }

// take decodes the value, unless there is one.
func (s *Signal[T]) take(key string, value []byte) error {
	if s.value.Load() != nil {
		return nil
	}
	v, err := record.Decode[T](value)
	if err != nil {
		return fmt.Errorf("cannot read %q: %w", key, err)
	}
	s.value.Store(&v)
	close(s.taken)
	return nil
}
