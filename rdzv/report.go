package rdzv

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/record"
)

// Fail reports that a worker of this agent failed. If there is no verdict yet, this
// failure is the verdict. It returns when the store has answered.
func (s *Session) Fail(ctx context.Context, w Worker) error {
	return s.endWith(ctx, record.FailedVerdict(s.config.Self.ID, s.config.Self.Host, w))
}

// End reports that this agent received a signal that ends the job. shared says that its workers
// have received it too.
func (s *Session) End(ctx context.Context, signal int, shared bool) error {
	v := s.verdictOf(Ended)
	v.Signal, v.Shared, v.Caller = signal, shared, s.caller.Load()
	return s.end(ctx, v)
}

// ByCaller says that what End and Withdraw report from now on is no signal: the caller of this
// agent wants it.
func (s *Session) ByCaller() { s.caller.Store(true) }

// Stop ends the job because its user wants it; by says who: "rdzv stop on node1". The workers are
// stopped as after SIGTERM.
func (s *Session) Stop(ctx context.Context, by string) error {
	v := s.verdictOf(Stopped)
	v.Text = by
	return s.end(ctx, v)
}

// ReportLoss reports the loss of something without which this agent's workers must not
// run, such as the launcher. text is a sentence. After a final loss no other attempt follows.
func (s *Session) ReportLoss(ctx context.Context, text string, final bool) error {
	v := s.verdictOf(Lost)
	v.Text, v.Final = text, final
	return s.endWith(ctx, v)
}

// Move tells all agents of this store to look for another one. It reports whether they
// will: a job whose world is agreed, or that has ended, does not move.
func (s *Session) Move(ctx context.Context) (moved bool, err error) {
	return s.writeVerdict(ctx, s.verdictOf(Moved), s.keys.world())
}

// verdictOf returns a verdict about this agent.
func (s *Session) verdictOf(kind Kind) Verdict {
	v := record.VerdictOf(kind)
	v.By, v.Host, v.PID = s.config.Self.ID, s.config.Self.Host, s.config.Self.PID
	return v
}

// endWith writes a verdict unless there is one.
func (s *Session) endWith(ctx context.Context, v Verdict) error {
	_, err := s.writeVerdict(ctx, v)
	return err
}

// writeVerdict writes a verdict unless there is one or a key in unless exists. It reports
// whether it has.
func (s *Session) writeVerdict(ctx context.Context, v Verdict, unless ...string) (bool, error) {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	conditions, put := s.keys.putVerdict(v, s.registration.jobLease, unless...)
	answer, err := commit(ctx, s.client, conditions, []clientv3.Op{put}, nil)
	if err != nil {
		return false, s.refused(ctx, fmt.Errorf("cannot write the verdict %q: %w", v.Error(), err))
	}
	return answer.Succeeded, nil
}

// refused returns why something was not written without which the job does not end. Unless ctx has
// ended the store has refused it, for example because it is full: then it is of no use any more.
func (s *Session) refused(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		s.loseStore(fmt.Errorf("%w: %v", ErrStoreLost, err))
	}
	return err
}

// put puts a value that exists as long as a lease; 0 is none.
func (s *Session) put(ctx context.Context, key, value string, lease clientv3.LeaseID) error {
	put := clientv3.OpPut(key, value, clientv3.WithLease(lease))
	_, err := commit(ctx, s.client, nil, []clientv3.Op{put}, nil)
	return err
}

// Settle publishes how all workers of this agent ended. An agent that has started none passes none.
// If there is no verdict yet, a worker that failed or is missing ends the job. In a job that checks
// its nodes no agent has workers, and links are what it has measured.
func (s *Session) Settle(ctx context.Context, workers []Worker, links ...Link) error {
	o := record.NewOutcome(s.config.Self.Host, workers)
	o.Ending = s.ending.Load() && s.survivesLoss()
	o.Links = slices.Clone(links)
	for i := range o.Links {
		l := &o.Links[i]
		l.Addr, l.Error = record.ClipFact(l.Addr), record.ClipFact(l.Error)
	}
	return s.putOutcome(ctx, s.keys.outcome(s.config.Self.ID), o, s.registration.jobLease)
}

// Progress publishes which workers of this agent have ended while others still run. The
// leader needs it to find stragglers among the workers of one agent.
func (s *Session) Progress(ctx context.Context, ended []Worker) error {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	o := record.NewOutcome(s.config.Self.Host, ended)
	key := s.keys.progress(s.config.Self.ID)
	if err := s.put(ctx, key, encode(o), s.registration.lease); err != nil {
		return fmt.Errorf("cannot write which workers have ended: %w", err)
	}
	return nil
}

// Reached publishes that all workers of this agent have reached init_process_group except some. The
// agent of rank 0 calls it when rank 0 has reached it, and then another one when the leader asks
// (see Look), unless it has nothing to except; both call it again when fewer are missing.
func (s *Session) Reached(ctx context.Context, except []Unreached) error {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	key := s.keys.reached(s.config.Self.ID)
	if err := s.put(ctx, key, encode(reached{Missing: except}), s.registration.lease); err != nil {
		return fmt.Errorf("cannot write which workers have reached init_process_group: %w", err)
	}
	return nil
}

// Release tells all agents that rank 0 has had its head start (World.HeadStart). Only its agent
// calls it.
func (s *Session) Release(ctx context.Context) error {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	if err := s.put(ctx, s.keys.release(), encode(release{}), s.registration.jobLease); err != nil {
		return fmt.Errorf("cannot write that the head start is over: %w", err)
	}
	return nil
}

// release is the value of signal/release.
type release struct{}

func (s *Session) putOutcome(
	ctx context.Context, key string, o Outcome, lease clientv3.LeaseID,
) error {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	err := s.put(ctx, key, encode(o), lease)
	if full(err) && o.Succeeded() && s.registration.elects {
		err = s.settleInFull(ctx)
	}
	if err != nil {
		return s.refused(ctx, fmt.Errorf("cannot write the outcome: %w", err))
	}
	return nil
}

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

// ShareSignal tells all agents, also this one, of a signal that this agent received at a time,
// unless an agent received the same one less than ShareOnce before. direct is SharedSignal.Direct.
func (s *Session) ShareSignal(ctx context.Context, signal int, at time.Time, direct bool) error {
	last := s.sharing.lastOf(signal)
	if at.Sub(last.at) < s.sharing.once {
		return nil
	}
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	// If several agents have received it, the first one writes it: the others have not seen that.
	key := s.keys.share(signal)
	unseen := clientv3.Compare(clientv3.ModRevision(key), "=", last.revision)
	put := clientv3.OpPut(key, encode(SharedSignal{
		Signal: signal, By: s.config.Self.ID, Direct: direct, Age: time.Since(at),
	}), clientv3.WithLease(s.registration.jobLease))
	_, err := commit(ctx, s.client, []clientv3.Cmp{unseen}, []clientv3.Op{put}, nil)
	if err != nil {
		return fmt.Errorf("cannot share signal %d: %w", signal, err)
	}
	return nil
}

// SharedSignals delivers the signals that agents share, each one once.
func (s *Session) SharedSignals() <-chan SharedSignal { return s.sharing.c }

// sharing is what an agent has seen of shared signals.
type sharing struct {
	c    chan SharedSignal
	once time.Duration // ShareOnce
	mu   sync.Mutex
	last map[int]shared // by signal
}

// shared is when an agent received a signal that was shared the last time, by the clock of this
// one, and the revision of the store.
type shared struct {
	at       time.Time
	revision int64
}

// maxShared is how many shared signals wait for SharedSignals.
const maxShared = 16

func newSharing() *sharing {
	return &sharing{
		c: make(chan SharedSignal, maxShared), once: ShareOnce, last: map[int]shared{},
	}
}

func (s *sharing) lastOf(signal int) shared {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[signal]
}

// take notes a signal that was shared. If nobody receives them, more are ignored.
func (s *sharing) take(value []byte, revision int64, self string) error {
	signal, err := decode[SharedSignal](value)
	if err != nil {
		return fmt.Errorf("cannot read a shared signal: %w", err)
	}
	signal.Own = signal.By == self
	s.mu.Lock()
	s.last[signal.Signal] = shared{time.Now().Add(-signal.Age), revision}
	s.mu.Unlock()
	select {
	case s.c <- signal:
	default:
	}
	return nil
}
