// Package collectives asks NCCL's RAS service of an agent's workers: any worker knows how far all
// ranks of the job are.
package collectives

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/ras"
	"rdzv/rdzv/masterport"
	"rdzv/rdzv/status"
)

// variable is where NCCL reads the address.
const variable = "NCCL_RAS_ADDR"

// Service is that of the workers of one agent in one attempt. Each agent gives its workers an
// address of their own for it, so that jobs on one host do not answer for each other.
type Service struct {
	addr  string // "" if it is not known
	asked bool   // by this agent
	world int    // number of ranks
	held  *masterport.Reservation
}

// Hold reserves an address, until Release, unless env has one. Without an error there is one.
func Hold(env map[string]string, world rdzv.World) (s *Service, err error) {
	s = &Service{world: world.Size, asked: asks(world)}
	if _, given := env[variable]; given {
		return s, nil
	}
	if s.held, err = masterport.HoldOne(); err != nil {
		return s, err
	}
	s.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.held.Port()))
	return s, nil
}

// Addr is the address for the workers; "" if the service has none of its own.
func (s *Service) Addr() string { return s.addr }

// Release ends the reservation.
func (s *Service) Release() {
	if s.held != nil {
		s.held.Close()
	}
}

// Note notes the address that a worker has got.
func (s *Service) Note(environ []string) {
	for _, entry := range environ {
		if addr, is := strings.CutPrefix(entry, variable+"="); is {
			s.addr = addr
		}
	}
}

// asks tells whether this agent is one of those that ask it: those of the first, the middle and the
// last rank. One is enough, but its worker may hang.
func asks(world rdzv.World) bool {
	seat, size := world.Seat, world.Size
	return size > 1 && slices.ContainsFunc([]int{0, size / 2, size - 1}, seat.Has)
}

// The time limits of questions: of one for a user, and of one that nobody waits for.
const (
	userWait    = time.Second
	userTimeout = 2500 * time.Millisecond
	patience    = 3 * time.Second
	limit       = 15 * time.Second
)

var errNotAsked = errors.New("no RAS service is asked")

// Asked tells whether this agent asks the service.
func (s *Service) Asked() bool { return s.asked && s.addr != "" }

// Ask asks the service for what nobody waits for.
func (s *Service) Ask(ctx context.Context) (ras.Report, error) {
	return s.ask(ctx, patience, limit)
}

// AskForUser asks the service beside what else an answer to a user needs. Without one it is empty.
func (s *Service) AskForUser(ctx context.Context) <-chan Answer {
	answer := make(chan Answer, 1)
	go func() {
		r, _ := s.ask(ctx, userWait, userTimeout)
		answer <- Answer{r, s.world}
	}()
	return answer
}

func (s *Service) ask(ctx context.Context, wait, limit time.Duration) (ras.Report, error) {
	if !s.Asked() {
		return ras.Report{}, errNotAsked
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return ras.Ask(ctx, s.addr, wait)
}

// Answer is a report of the service about a job of so many ranks. It is empty without an answer.
type Answer struct {
	ras.Report
	world int
}

// Lag is which ranks are behind.
func (a Answer) Lag() ras.Lag { return a.Report.Lag(a.world) }

// maxLaunched is of how many ranks an answer has counts: it has a limit.
const maxLaunched = 1 << 14

// Status returns the part of the answer that rdzv status shows, nil if there is none. It has counts
// only if there are at most maxLaunched ranks.
func (a Answer) Status() *status.Collectives {
	text := a.Lag().Text
	if text == "" {
		return nil
	}
	c := &status.Collectives{Text: text}
	if a.world <= maxLaunched {
		c.Launched = a.Launched(a.world)
	}
	return c
}
