package meet

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/meet/internal/gate"
)

// A search finds the store among the candidates of its sources.
type search struct {
	dialer  *gate.Dialer
	sources []source
	past    []gate.Instance // stores whose job has ended
	report  func(gate.Rejection)
	targets targets

	plan       *plan // for messages
	begin      time.Time
	unresolved map[string]bool // names; true if the resolver has answered
	notify     func(Notice)
	nextReport func(time.Duration) time.Duration // nil: Searching is not reported

	rejections     *rejections
	refusedTimeout time.Duration    // from the first refusal, or its end, to RefusedError
	refusedBy      *target          // the address that has refused this agent; nil if none
	refusal        RefusedError     // of refusedBy
	refused        <-chan time.Time // when to give up; nil without refusedBy

	best  *answer   // the connection with the best priority so far
	until time.Time // when to stop waiting for a better one
}

// An answer is an authenticated connection to the store, or why there is none.
type answer struct {
	gate.Greeting
	conn net.Conn
	addr netip.AddrPort
	err  error
}

// run returns the first connection to the store, or a *NotFoundError when ctx ends, or a
// *RefusedError. All its goroutines have ended when it returns.
func (s *search) run(ctx context.Context) (*answer, error) {
	// Attempts do not inherit ctx's deadline, whose error would replace the answers of addresses.
	attempts, cancel := context.WithCancel(context.WithoutCancel(ctx))
	candidates, answers := make(chan candidate), make(chan answer)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	for _, src := range s.sources {
		group.Go(func() {
			src(attempts, func(c candidate) {
				select {
				case candidates <- c:
				case <-attempts.Done():
				}
			})
		})
	}
	s.targets, s.unresolved = targets{}, map[string]bool{}
	reportAt, report := s.scheduleReport(0)
	for {
		if s.best != nil && !s.mayImprove() {
			return s.best, nil
		}
		due, sleep := s.due()
		for _, t := range due {
			group.Go(func() { s.dial(attempts, t.addr, t.name, answers) })
		}
		wake := time.After(sleep)
		select {
		case c := <-candidates:
			s.add(c)
		case a := <-answers:
			s.evaluate(a)
		case <-report:
			waited := max(reportAt, time.Since(s.begin).Truncate(time.Second))
			if !s.rejections.explain() {
				s.notify(s.searching(waited))
			}
			reportAt, report = s.scheduleReport(waited)
		case <-s.refused:
			if s.best == nil {
				return nil, &s.refusal
			}
		case <-wake:
		case <-ctx.Done():
			if s.best != nil {
				return s.best, nil
			}
			return nil, &NotFoundError{Searching: s.searching(time.Since(s.begin)),
				Cause: context.Cause(ctx)}
		}
	}
}

// add adds a candidate, or notes that a name is not resolved yet.
func (s *search) add(c candidate) {
	if c.addr.IsValid() {
		delete(s.unresolved, c.name)
		s.targets.add(c)
	} else {
		s.unresolved[c.name] = c.failed
	}
}

// mayImprove reports whether an attempt is under way to an address with a better priority that
// seems to be the same store's.
func (s *search) mayImprove() bool {
	for _, t := range s.targets {
		if t.dialing && t.addr.Port() == s.best.addr.Port() &&
			t.priority < s.targets[s.best.addr].priority && time.Now().Before(s.until) {
			return true
		}
	}
	return false
}

// due returns the targets to which attempts begin now, and the time until the next may.
func (s *search) due() (due []*target, sleep time.Duration) {
	now := time.Now()
	if s.best != nil {
		return nil, s.until.Sub(now)
	}
	sleep, burst := burstInterval, burst
	if s.plan.peers != nil {
		burst = maxDialing // anybody may send recorded beacons of agents that do not answer
	}
	dialing, recent := 0, 0
	for _, t := range s.targets {
		switch {
		case t.dialing:
			dialing++
			if now.Sub(t.started) < burstInterval {
				recent++
			}
		case !t.next.After(now):
			due = append(due, t)
		default:
			sleep = min(sleep, t.next.Sub(now))
		}
	}
	slices.SortFunc(due, func(a, b *target) int {
		return cmp.Or(cmp.Compare(a.timeouts, b.timeouts),
			cmp.Compare(a.priority, b.priority), a.addr.Compare(b.addr))
	})
	due = due[:max(0, min(len(due), burst-recent, maxDialing-dialing))]
	for _, t := range due {
		t.dialing, t.started = true, now
	}
	return due, max(sleep, time.Millisecond)
}

func (s *search) dial(
	ctx context.Context, addr netip.AddrPort, host string, answers chan<- answer,
) {
	ps := s.plan.peers
	conn, greeting, err := s.dialer.DialAgent(ctx, addr, func(id gate.Instance) error {
		return ps.waitFor(id, host, addr)
	})
	if err != nil {
		ps.waitNoMore(addr)
	}
	select {
	case answers <- answer{greeting, conn, addr, err}:
	case <-ctx.Done():
		if err == nil {
			conn.Close()
			ps.waitNoMore(addr)
		}
	}
}

var errJobEnded = errors.New("the job of that store has ended")

// evaluate processes the answer of one address.
func (s *search) evaluate(a answer) {
	t := s.targets[a.addr]
	if a.err == nil {
		if !slices.Contains(s.past, a.ID) {
			s.keepBetter(&a)
			return
		}
		a.conn.Close()
		s.plan.peers.waitNoMore(a.addr)
		a.err = errJobEnded
	}
	t.dialing, t.err = false, a.err
	t.timeouts++
	if netErr, ok := errors.AsType[net.Error](a.err); !ok || !netErr.Timeout() {
		t.timeouts = 0
	}
	t.wait = t.nextWait()
	s.noteRefusal(t)
	switch {
	case a.err == gate.ErrFull:
		t.wait = rejectedWait
	case !s.plan.named && a.err == gate.ErrOtherShared: // probably another user's
		t.wait = rejectedWait
	case refuses(a.err), errors.Is(a.err, gate.ErrDifferentJob):
		t.wait = rejectedWait
		s.report(s.rejection(t))
	}
	t.next = time.Now().Add(t.wait/2 + rand.N(t.wait))
}

// keepBetter keeps the connection with the better priority of a and s.best.
func (s *search) keepBetter(a *answer) {
	switch {
	case s.best == nil:
		s.best, s.until = a, time.Now().Add(improveTimeout)
	case s.targets[a.addr].priority < s.targets[s.best.addr].priority:
		s.best.conn.Close()
		s.best = a
	default:
		a.conn.Close()
	}
}

// noteRefusal begins to count when an agent refuses this one, and again when that has ended: the
// agent that is to host the store may start then. In an election the agents that refuse each other
// may all be searching: then none gives up.
func (s *search) noteRefusal(t *target) {
	refused := refuses(t.err) && (s.plan.named || t.err != gate.ErrOtherShared)
	switch {
	case refused && s.plan.peers == nil && (s.refusedBy == nil || s.refusal.Ended):
		s.refusedBy = t
		s.refusal = RefusedError{By: noticeOf(s.rejection(t)), After: s.refusedTimeout}
	case !refused && s.refusedBy == t && !s.refusal.Ended:
		s.refusal.Ended = true
	default:
		return
	}
	s.refused = time.After(s.refusedTimeout)
}

// refuses tells whether the answer is that of an agent of the job that does not admit this one.
func refuses(err error) bool {
	_, isVersion := errors.AsType[*protocol.VersionError](err)
	return isVersion || errors.Is(err, gate.ErrDifferentToken)
}

func (s *search) rejection(t *target) gate.Rejection {
	return gate.Rejection{
		Host: t.name, Addr: t.addr.Addr(), Reason: t.err, Hosting: t == s.refusedBy,
	}
}

// scheduleReport returns the time of the report after the one at last, since the beginning, and
// what becomes ready then.
func (s *search) scheduleReport(last time.Duration) (next time.Duration, ready <-chan time.Time) {
	if s.nextReport == nil {
		return 0, nil
	}
	next = s.nextReport(last)
	return next, time.After(time.Until(s.begin.Add(next)))
}

// searching returns what is known after that time.
func (s *search) searching(waited time.Duration) Searching {
	n := Searching{Waited: waited, Unresolved: slices.Sorted(maps.Keys(s.unresolved))}
	n.Unanswered = slices.DeleteFunc(slices.Clone(n.Unresolved), func(name string) bool {
		return s.unresolved[name]
	})
	for _, t := range s.targets {
		if !t.started.IsZero() {
			n.Tried = append(n.Tried, Answer{Name: t.name, Addr: t.addr, Err: t.err})
		}
	}
	slices.SortFunc(n.Tried, func(a, b Answer) int { return a.Addr.Compare(b.Addr) })
	if s.plan.peers != nil {
		n.Multicast = true
		n.Connected = s.plan.peers.connected()
		n.Heard, n.HeardAgo = s.plan.peers.lastHeard()
	}
	n.Rejections = s.rejections.notices()
	n.Hint = s.plan.hintFor(n)
	return n
}
