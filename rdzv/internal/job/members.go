package job

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"rdzv/rdzv/internal/placement"
	"rdzv/rdzv/internal/record"
)

// member is an agent of an attempt.
type member struct {
	record.Member
	seat      record.Seat
	here      bool // has joined this attempt; otherwise it was a member of the one before
	settled   bool // has published how its workers have ended, or has none
	lost      bool
	silent    time.Duration   // for how long, before it counted as lost; 0 if that is not why
	lostAt    time.Time       // if its workers ran then; otherwise zero
	withdrawn bool            // it is lost because it has left the job
	ending    bool            // has received a signal that ends the attempt
	replaces  string          // host of the lost agent whose seat it has; "" if it is its own
	before    *member         // the lost agent whose seat it has taken over by joining; or nil
	ended     []record.Worker // as far as published before it settled
}

// known returns nil if m is nil, which says that the agent is no member.
func (m *member) known() *record.Member {
	if m == nil {
		return nil
	}
	return &m.Member
}

// vacant tells whether the agent is lost and nobody has taken over its seat yet.
func (m *member) vacant() bool { return m.lost && !m.here }

// ranks are the host and the ranks of an agent that has a seat.
func (m *member) ranks() record.NodeRanks {
	return record.NodeRanks{Host: m.Host, Ranks: m.seat.Ranks()}
}

// ownsNode tells whether the agent runs all workers of its node.
func (m *member) ownsNode() bool { return m.seat.Workers() == m.seat.LocalSize }

// lostVerdict returns the verdict about the agent if it is lost.
func (m *member) lostVerdict() record.Verdict {
	first := m.FirstTask()
	v := record.Verdict{
		Kind: record.Lost, By: m.ID, Host: m.Host, PID: m.PID,
		Rank: first.Rank, LocalRank: first.LocalRank, Ranks: m.TaskRanks(),
		Silent: record.Seconds(m.silent),
	}
	if m.seat.Workers() > 0 { // the world is agreed
		v.Rank, v.Ranks = m.seat.First(), m.seat.Ranks()
		v.LocalRank = m.seat.LocalRankOf(m.seat.Index(v.Rank))
	}
	return v
}

// loss says for people that the agent is not a member any more.
func (m *member) loss() error {
	v := m.lostVerdict()
	if m.withdrawn {
		v.Kind, v.Withdrawn = record.Ended, true
	}
	return &v
}

// reason says why the agent is not a member any more.
func (m *member) reason() string {
	if m.withdrawn {
		return "it received SIGTERM"
	}
	return record.HowLost(m.silent)
}

// bySeat compares members by their ranks; those without come last.
func bySeat(a, b *member) int {
	rank := func(m *member) int {
		if m.seat.Workers() == 0 {
			return math.MaxInt
		}
		return m.seat.First()
	}
	return cmp.Compare(rank(a), rank(b))
}

// members are those of an attempt, in the order in which they joined; from the world on first those
// that have ranks, in their order.
type members struct {
	byID     map[string]*member
	all      []*member
	unseated []record.Member // that joined when there was no place for them
	joined   int             // number of those that have joined this attempt
	here     int             // number of tasks of these
	pending  int             // number of those that are neither settled nor lost
	launched bool            // they are tasks of a launcher
}

func (m *members) add(one *member) {
	m.byID[one.ID] = one
	m.all = append(m.all, one)
	m.launched = m.launched || one.Launched()
	if one.here {
		m.count(one, 1)
	}
	if !one.lost && !one.settled {
		m.pending++
	}
}

// join notes that one has joined this attempt that was a member of the one before, or that a leader
// before has known.
func (m *members) join(one *member, value record.Member) {
	one.Member, one.here = value, true
	m.count(one, 1)
}

// count counts one that has joined this attempt, or with -1 that has not any more.
func (m *members) count(one *member, by int) {
	m.joined += by
	m.here += by * len(one.Tasks)
}

// allHere tells whether all have joined this attempt.
func (m *members) allHere() bool { return m.joined == len(m.all) }

// present are those that have joined this attempt.
func (m *members) present() []record.Member {
	list := make([]record.Member, 0, len(m.all))
	for _, one := range m.all {
		if one.here {
			list = append(list, one.Member)
		}
	}
	return list
}

// remove removes one that is not lost.
func (m *members) remove(one *member) {
	m.leave(one)
	if !one.settled {
		m.pending--
	}
	m.all = slices.DeleteFunc(m.all, func(other *member) bool { return other == one })
	delete(m.byID, one.ID)
}

// leave notes that a member has not joined this attempt any more.
func (m *members) leave(one *member) {
	if one.here {
		one.here = false
		m.count(one, -1)
	}
}

// tasks is how many tasks they have.
func (m *members) tasks() (n int) {
	for _, one := range m.all {
		n += len(one.Tasks)
	}
	return n
}

// left is how many tasks those have that are not lost.
func (m *members) left() (n int) {
	for _, one := range m.all {
		if !one.lost {
			n += len(one.Tasks)
		}
	}
	return n
}

// settle notes that one has settled.
func (m *members) settle(one *member) {
	one.settled = true
	if !one.lost {
		m.pending--
	}
}

// unsettled names the members that have not settled, for people.
func (m *members) unsettled() string {
	var names []string
	for _, one := range m.all {
		if !one.settled && !one.lost {
			names = append(names, record.AgentName(one.lostVerdict()))
		}
	}
	return record.List(record.Cut(names))
}

func (m *members) unseat(id string) {
	m.unseated = slices.DeleteFunc(m.unseated, func(m record.Member) bool { return m.ID == id })
}

// replace makes these the only ones, in the order of their seats.
func (m *members) replace(all []*member) {
	*m = members{byID: map[string]*member{}, launched: m.launched}
	slices.SortStableFunc(all, func(a, b *member) int {
		return cmp.Or(bySeat(a, b), placement.NaturalOrder(a.Host, b.Host), strings.Compare(a.ID, b.ID))
	})
	for _, one := range all {
		m.add(one)
	}
}

// remaining are the members of the next attempt. Those of an elastic job are in the order of their
// ranks; those that wait for it come last, in the order in which they joined.
func (m *members) remaining(elastic bool) []*member {
	if !elastic {
		return m.all
	}
	lost := func(m *member) bool { return m.lost }
	all := slices.DeleteFunc(slices.Clone(m.all), lost)
	slices.SortStableFunc(all, bySeat)
	return all
}
