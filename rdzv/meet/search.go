package meet

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"rdzv/rdzv/meet/internal/gate"
)

// A search finds the store among the addresses that its sources offer.
type search struct {
	dialer  *gate.Dialer
	sources []source
	past    []gate.Instance // stores whose job is over
	told    func(gate.Rejection)
	tries   tries

	best  *found    // found already
	until time.Time // when best is good enough
}

type found struct {
	gate.Greeting
	conn net.Conn
	addr netip.AddrPort
}

type answered struct {
	found
	err error
}

// run returns the first verified connection, or when ctx ends. Nothing of it is running any more
// then.
func (s *search) run(ctx context.Context) (*found, error) {
	// An attempt must not fail of ctx's deadline: its answer would hide what the address has said
	// before.
	trying, cancel := context.WithCancel(context.WithoutCancel(ctx))
	offers, answers := make(chan offer), make(chan answered)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	for _, src := range s.sources {
		group.Go(func() {
			src(trying, func(o offer) {
				select {
				case offers <- o:
				case <-trying.Done():
				}
			})
		})
	}
	s.tries = tries{}
	for {
		if s.best != nil && !s.betterOpen() {
			return s.best, nil
		}
		wake := time.NewTimer(s.launch(trying, &group, answers))
		select {
		case o := <-offers:
			s.tries.take(o)
		case a := <-answers:
			s.keep(s.judge(a))
		case <-wake.C:
		case <-ctx.Done():
			if s.best != nil {
				return s.best, nil
			}
			return nil, s.notFound(context.Cause(ctx))
		}
		wake.Stop()
	}
}

// keep keeps the better of two ways to the store.
func (s *search) keep(f *found) {
	switch {
	case f == nil:
	case s.best == nil:
		s.best, s.until = f, time.Now().Add(preferFor)
	case s.tries[f.addr].likely < s.tries[s.best.addr].likely:
		s.best.conn.Close()
		s.best = f
	default:
		f.conn.Close()
	}
}

// betterOpen says that a more likely address of what seems to be the same store is about to answer.
func (s *search) betterOpen() bool {
	for _, t := range s.tries {
		if t.open && t.addr.Port() == s.best.addr.Port() && t.likely < s.tries[s.best.addr].likely && time.Now().Before(s.until) {
			return true
		}
	}
	return false
}

// launch starts the attempts that are due, and says when the next may be.
func (s *search) launch(ctx context.Context, group *sync.WaitGroup, answers chan<- answered) time.Duration {
	now := time.Now()
	open, fresh := 0, 0
	sleep := burstEvery
	if s.best != nil {
		return s.until.Sub(now)
	}
	var due []*try
	for _, t := range s.tries {
		switch {
		case t.open:
			open++
			if now.Sub(t.started) < burstEvery {
				fresh++
			}
		case !t.next.After(now):
			due = append(due, t)
		default:
			sleep = min(sleep, t.next.Sub(now))
		}
	}
	slices.SortFunc(due, func(a, b *try) int {
		return cmp.Or(cmp.Compare(a.likely, b.likely), a.addr.Compare(b.addr))
	})
	for _, t := range due[:max(0, min(len(due), burst-fresh, maxOpen-open))] {
		t.open, t.started = true, now
		group.Go(func() { s.attempt(ctx, t.addr, answers) })
	}
	return max(sleep, time.Millisecond)
}

func (s *search) attempt(ctx context.Context, addr netip.AddrPort, answers chan<- answered) {
	conn, greeted, err := s.dialer.Dial(ctx, addr)
	select {
	case answers <- answered{found{greeted, conn, addr}, err}:
	case <-ctx.Done():
		if err == nil {
			conn.Close()
		}
	}
}

var errClosed = errors.New("the job of that store has ended")

// judge takes in one answer; it returns the store if that was it.
func (s *search) judge(a answered) *found {
	t := s.tries[a.addr]
	if a.err == nil && !slices.Contains(s.past, a.ID) {
		return &a.found
	}
	if a.err == nil {
		a.conn.Close()
		a.err = errClosed
	}
	t.open, t.answer = false, a.err
	t.wait = t.longer()
	var moved gate.MovedError
	switch {
	case errors.As(a.err, &moved):
		s.tries.take(offer{addr: moved.To, name: t.name, likely: -1})
	case errors.Is(a.err, gate.ErrDifferentToken), errors.Is(a.err, gate.ErrDifferentJob):
		t.wait = strangeFor
		s.told(gate.Rejection{Host: t.name, Addr: a.addr.Addr(), Reason: a.err})
	}
	t.next = time.Now().Add(t.wait/2 + rand.N(t.wait))
	return nil
}

func (s *search) notFound(cause error) error {
	e := &NotFoundError{Cause: cause}
	for _, t := range s.tries {
		if !t.started.IsZero() {
			e.Tried = append(e.Tried, Answer{Name: t.name, Addr: t.addr, Err: t.answer})
		}
	}
	slices.SortFunc(e.Tried, func(a, b Answer) int { return a.Addr.Compare(b.Addr) })
	return e
}
