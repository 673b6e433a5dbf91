package job

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/record"
)

// State decides for the leader of a job, see the package comment. It follows the job from one
// attempt to the next. It is not safe for concurrent use.
type State struct {
	config  settings
	agents  agents
	attempt *attempt
	next    succession
	overlap overlap
	applied time.Time // the time of the last call
}

// newState is that of a job of which nothing has happened.
func newState(now time.Time, c Config, in Store) *State {
	c.Complete()
	s := &State{config: settings{c, in}, agents: agents{
		present: map[string]*record.Member{}, gone: map[string]bool{},
	}}
	s.attempt = newAttempt(&s.config, &s.agents, c.Attempt, now, time.Time{})
	s.next.overlap = &s.overlap
	return s
}

// Over tells whether the job has ended, so that nothing follows.
func (s *State) Over() bool { return s.attempt.end.over }

// Attempt is the number of the present attempt.
func (s *State) Attempt() int { return s.attempt.number }

// Members are those of the present attempt, also those that have yet to join it.
func (s *State) Members() (list []record.Member) {
	for _, m := range s.attempt.members.all {
		list = append(list, m.Member)
	}
	return list
}

// Apply takes what has happened, all changes of one revision of the store together, and returns
// what follows from it. Without changes only time has passed, see Wake.
func (s *State) Apply(now time.Time, changes ...Change) ([]Write, []Notice) {
	t := &turn{now: now}
	for _, c := range changes {
		s.absorb(t, c)
	}
	s.follow(t)
	return t.writes, t.notices
}

// absorb notes a change. It decides nothing that would have to be written: what follows depends
// only on what is in the store then, whether it was read as it happened or all at once.
func (s *State) absorb(t *turn, c Change) {
	first, rest, _ := strings.Cut(c.Key, "/")
	switch first {
	case keys.Agent:
		if c.Value != nil {
			s.agents.register(rest, c.Value)
			return
		}
		s.agents.deregister(t.now, rest, s.config.returnTime())
	case keys.Lost:
		if c.Value != nil {
			loss, _ := read[record.Loss](c.Value) // whatever it says, the agent is lost
			s.lose(t, rest, loss)
		}
	case keys.Latest:
		s.next.latestRev = c.Rev
		if v, err := read[record.Latest](c.Value); err == nil && v.Attempt > s.attempt.number {
			s.attempt = s.next.begin(t, s.attempt, v)
		}
	default:
		if n, err := strconv.Atoi(first); err == nil && n >= s.attempt.number {
			s.absorbOfAttempt(t, n, rest, c)
		}
	}
}

// absorbOfAttempt notes a change of a key of the present attempt, or of a later one.
func (s *State) absorbOfAttempt(t *turn, n int, key string, c Change) {
	if n > s.attempt.number { // the attempts before it have been removed
		s.attempt = newAttempt(&s.config, &s.agents, n, t.now, s.attempt.began)
	}
	s.attempt.absorb(t, key, c)
}

// lose notes that an agent is lost, or has left. Its member or outcome may be in the store and not
// yet read here.
func (s *State) lose(t *turn, id string, loss record.Loss) {
	since, a := t.now.Add(-loss.Ago), s.attempt
	if m := s.agents.isMissing(id); m != nil {
		since = m.since
	}
	if s.agents.departing[id] != nil {
		s.overlap.await(since, loss, s.agents.departing[id].Host, &s.config)
		s.agents.hasDeparted(id)
	}
	if s.agents.gone[id] {
		return
	}
	m := a.members.byID[id]
	if m != nil {
		m.silent = loss.After
		gathers := !a.phase.complete && m.here
		if !m.lost && !m.seat.Spare && !gathers { // it may run workers
			s.overlap.await(since, loss, m.Host, &s.config)
		}
	}
	a.remove(id, cmp.Or(m.known(), loss.Agent))
	a.lose(t, id, m)
}

// follow writes what follows from what is known now: its rules in their order.
func (s *State) follow(t *turn) {
	a := s.attempt
	s.applied = t.now
	s.agents.followDeparting(t.now, &s.config)
	s.agents.declareLost(t, a.isSpare)
	if !a.end.decided {
		a.gather.admitLate(t, a.keys, s.isLast())
		a.leave.decide(t, a.keys, &a.end)
		a.agreement.forgetSeats(t)
		a.gather.limit(t.now)
		a.start(t, &s.overlap)
		a.success.limit(t, &s.config, a.members.all, &a.end)
		a.end.write(t, a.keys)
		s.next.settle(t, a)
	}
	if a.phase.later && a.phase.world != nil {
		a.previous.forget(t, a.number-1, &s.config)
	}
	a.gather.report(t)
	a.gather.reportDelay(t, a.number, &s.overlap)
}

// isLast tells whether no attempt follows the present one.
func (s *State) isLast() bool { return s.attempt.number >= s.config.Restarts.Max }

// Wake is when Apply is to be called if nothing happens before; zero if there is no such time. It
// is later than the last call: what was due then has been done, or waits for something else.
func (s *State) Wake() time.Time {
	at := earliest{after: s.applied}
	s.agents.wake(&at)
	if !s.attempt.end.decided {
		s.attempt.wake(&at, &s.overlap)
	}
	return at.time
}
