package job

import (
	"strconv"
	"strings"
	"time"
)

// State is what a leader knows of a job, from one attempt to the next.
type State struct {
	config  Config
	agents  agents
	past    past
	attempt *attempt
	clearAt time.Time // until then workers of lost agents may run
	notices []Notice  // of the present call
	applied time.Time // the time of the last call

	restoring bool // what is read has happened before
}

// past is what a leader has to know of the attempts before this one.
type past struct {
	failures []failure
	began    time.Time // when the first world was published
}

// attempt is one attempt of the job. Each feature has its part of it.
type attempt struct {
	number  int
	keys    keys
	later   bool // it follows another one
	members members
	gather  gathering
	late    late
	leave   leaving
	ready   confirmation
	init    initWatch
	success stragglers
	end     ending
}

func (c *Config) attempt(number int, now time.Time) *attempt {
	return &attempt{
		number: number, keys: keysOf(number), later: number > c.Attempt,
		members: members{byID: map[string]*member{}},
		gather:  gathering{begin: now},
	}
}

// newState is that of a job of which nothing has happened.
func newState(now time.Time, c Config) *State {
	s := &State{config: c.withDefaults(), agents: agents{
		present: map[string]*Member{}, gone: map[string]bool{},
	}}
	s.attempt = s.config.attempt(c.Attempt, now)
	return s
}

// Over tells whether the job has ended, so that nothing follows.
func (s *State) Over() bool { return s.attempt.end.over }

// Attempt is the number of the present attempt.
func (s *State) Attempt() int { return s.attempt.number }

// Continue lets a state that was restored wait no longer than the one that it replaces.
func (s *State) Continue(before *State) {
	if s.attempt.number == before.attempt.number {
		s.attempt.gather.startAt, s.clearAt = before.attempt.gather.startAt, before.clearAt
	}
}

// Apply takes what has happened, all changes of one revision of the store together, and returns
// what follows from it. Without changes only time has passed, see Wake.
func (s *State) Apply(now time.Time, changes ...Change) ([]Write, []Notice) {
	for _, c := range changes {
		s.absorb(now, c)
	}
	return s.follow(now), s.taken()
}

func (s *State) taken() []Notice {
	n := s.notices
	s.notices = nil
	return n
}

func (s *State) notify(n Notice) { s.notices = append(s.notices, n) }

func (s *State) warn(err error) { s.notify(Warning{err}) }

// absorb notes a change. It decides nothing that would have to be written: what follows depends
// only on what is in the store then, whether it was read as it happened or all at once.
func (s *State) absorb(now time.Time, c Change) {
	first, rest, _ := strings.Cut(c.Key, "/")
	switch first {
	case "agent":
		s.absorbAgent(now, rest, c)
		return
	case "lost":
		if loss, err := read[Loss](c.Value); c.Value != nil {
			_ = err // whatever it says, the agent is lost
			s.lose(now, rest, loss)
		}
		return
	case "stranger":
		s.absorbStranger(c)
		return
	case "latest":
		if v, err := read[Latest](c.Value); err == nil && v.Attempt > s.attempt.number {
			s.begin(now, v)
		}
		return
	}
	n, err := strconv.Atoi(first)
	if err != nil || n < s.attempt.number {
		return
	}
	if n > s.attempt.number { // the attempts before it have been removed
		s.attempt = s.config.attempt(n, now)
	}
	s.absorbOfAttempt(now, rest, c)
}

// absorbOfAttempt notes a change of a key of the present attempt.
func (s *State) absorbOfAttempt(now time.Time, key string, c Change) {
	kind, id, _ := strings.Cut(key, "/")
	if c.Value == nil {
		s.absorbDeletion(kind, id)
		return
	}
	switch kind {
	case "member":
		s.admit(now, id, c.Value)
	case "preparing":
		s.attempt.members.prepare(id, c.Value)
	case "seat":
		s.takeSeat(now, id, c.Value)
	case "ready":
		s.takeReadiness(id, c.Value)
	case "outcome":
		s.takeOutcome(now, id, c.Value)
	case "progress":
		s.takeProgress(now, id, c.Value)
	case "reached":
		s.takeReached(now, id, c.Value)
	case "connecting":
		s.takeConnecting(now, id, c.Value)
	case "signal":
		s.absorbSignal(now, id, c)
	}
}

func (s *State) absorbDeletion(kind, id string) {
	m := &s.attempt.members
	switch kind {
	case "member":
		if one := m.byID[id]; one != nil {
			one.deleted, m.deleted = true, true
		}
	case "preparing":
		delete(m.preparing, id)
	case "seat":
		delete(s.attempt.gather.seats, id)
	}
}

// absorbSignal notes a change of a key below signal/.
func (s *State) absorbSignal(now time.Time, name string, c Change) {
	a := s.attempt
	switch name {
	case "exports":
		e, err := read[Exports](c.Value)
		if err == nil {
			a.gather.exports = &e
		}
	case "world":
		if w, err := read[World](c.Value); err == nil {
			s.takeWorld(now, w)
		}
	case "start":
		a.ready.started = true
	case "absent":
		a.init.absence.take(c.Value)
	case "look":
		a.init.asked = true
	case "verdict":
		s.takeVerdict(now, c)
	case "settled":
		if v, err := read[Settled](c.Value); err == nil {
			s.takeSettled(v, c.Rev)
		}
	default:
		if id, ok := strings.CutPrefix(name, "left/"); ok {
			s.takeLeft(now, id)
		}
	}
}

// follow returns what is to be written because of what is known now.
func (s *State) follow(now time.Time) []Write {
	var w writes
	s.applied = now
	s.loseMissing(now, &w)
	if a := s.attempt; !a.end.decided {
		s.answerLate(now, &w)
		s.letLeave(&w)
		s.forgetSeats(&w)
		s.limitJoin(now)
		s.start(now, &w)
		s.startWorkers(&w)
		s.settleDeleted(now)
		s.watchInit(now, &w)
		s.limitStragglers(now)
		s.writeVerdict(&w)
		s.settle(now, &w)
	}
	s.forgetPrevious(&w)
	s.reportWaiting(now)
	return w
}

// Wake is when Apply is to be called if nothing happens before; zero if there is no such time. It
// is later than the last call: what was due then has been done, or waits for something else.
func (s *State) Wake() time.Time {
	at := earliest{after: s.applied}
	s.agents.wake(&at)
	if a := s.attempt; !a.end.decided {
		s.wakeGathering(&at)
		s.wakeInit(&at)
		s.wakeStragglers(&at)
		a.end.wake(&at)
	}
	return at.time
}

// earliest is the first of several times that is later than another one; zero is none.
type earliest struct{ after, time time.Time }

func (e *earliest) add(at time.Time) {
	if at.After(e.after) && (e.time.IsZero() || at.Before(e.time)) {
		e.time = at
	}
}

func (s *State) absorbStranger(c Change) {
	if c.Value == nil {
		return
	}
	if host, warning := strangerOf(c.Value); warning != nil && s.agents.addStranger(host) {
		s.warn(warning)
	}
}
