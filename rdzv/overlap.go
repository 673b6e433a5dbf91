package rdzv

import (
	"time"

	"rdzv/internal/boottime"
)

// No worker of an attempt may run when one of the next attempt starts, also if its agent is frozen
// or disconnected. An agent that the store has not answered takes itself for lost before any other
// agent does: the time counts from when it sent the last message that was answered. From then on
// its workers may run for LostGrace. The leader, which learns of the loss later, waits longer.

const (
	// MaxLostGrace is the largest LeaderConfig.LostGrace.
	MaxLostGrace = 4 * time.Second
	// lostMargin is how much longer the leader waits than a lost agent may take to kill its workers,
	// and how long it waits if the agent's connection has broken, which kills them at once.
	lostMargin = time.Second
)

// renewalsPerTimeout is how often per peer timeout an agent sends a message to a store that another
// one hosts.
const renewalsPerTimeout = 5

// renew renews this agent's presence from now on in a store that an agent hosts, if another attempt
// may follow the one of the world. asked is when this agent sent a message that has been answered.
func (s *Session) renew(w World, asked time.Duration) {
	stream := s.registration.stream
	if stream == nil || !w.MayRestart() || w.PeerTimeout <= 0 {
		return
	}
	s.renewed(asked + w.PeerTimeout)
	stream.Renew(w.PeerTimeout/renewalsPerTimeout, boottime.Now, func(sent time.Duration) {
		s.renewed(sent + w.PeerTimeout)
	})
}

func (s *Session) renewed(until time.Duration) {
	if s.config.Renewed != nil {
		s.config.Renewed(until)
	}
}
