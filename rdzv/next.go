package rdzv

import (
	"context"
	"errors"
	"time"

	"rdzv/rdzv/internal/registration"
)

// Next makes this agent a member of the attempt that follows this one, after Leave. It stays
// registered in the store all the time, under the same ID. If it cannot join, or if the job has
// ended meanwhile, the Context of the session that is returned ends with the reason, as at any
// other time. ctx bounds only the call.
func (s *Session) Next(ctx context.Context, self Member, joinBy time.Time) (*Session, error) {
	restart := s.leave.summary.Restart
	if restart == nil {
		return nil, errors.New("cannot join another attempt: there is none")
	}
	c := s.config
	self.ID = c.Self.ID
	c.Attempt, c.Self, c.JoinBy = restart.Attempt, self, joinBy
	if err := c.completeSelf(); err != nil {
		s.close(err, registration.Nothing)
		return nil, err
	}
	s.life.end(errLeft, s.signals)
	e := &entry{registration: s.registration, config: c, returns: true}
	// ErrClosed: another agent has ended the job already, and this one has read how.
	if err := e.try(ctx); err != nil && err != ErrClosed {
		e.session.life.store.Lose(&StoreLostError{Why: err})
	}
	return e.session, nil
}
