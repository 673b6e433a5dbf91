package job

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"rdzv/rdzv/internal/record"
)

// An agent lives as long as its key agent/ID. Where no agent hosts the store that is deleted at the
// end of its lease, which may be revoked although the agent lives: it then registers again. Only
// lost/ID makes an agent lost. It is put in the commit that deletes agent/ID or, after some time,
// by the leader if there is no agent/ID. An agent with that key never returns.

// agents are those that have registered in the job's run.
type agents struct {
	present map[string]*record.Member // by ID, with what identifies them
	missing []missing                 // whose key was deleted
	gone    map[string]bool           // that are lost or have left, and never return
	// Of these, those whose processes may run until they have left the store.
	departing map[string]*record.Member
	goneTasks int // how many tasks these had, at least one each
}

// missing is an agent whose key was deleted.
type missing struct {
	id       string
	since    time.Time
	lostAt   time.Time      // if it has not registered again by then
	agent    *record.Member // nil if that is not known
	declared bool           // the leader has tried to put lost/ID
}

// register notes that an agent has its key.
func (a *agents) register(id string, value any) {
	m, err := read[record.Member](value)
	if err != nil {
		m = record.Member{ID: id} // it is there; its member says what is wrong
	}
	a.present[id] = &m
	a.forgive(id)
}

// deregister notes that an agent's key was deleted.
func (a *agents) deregister(now time.Time, id string, wait time.Duration) {
	a.miss(now, id, a.present[id], wait)
	delete(a.present, id)
}

// miss notes that an agent has no key agent/ID. It has so much time to register again.
func (a *agents) miss(now time.Time, id string, agent *record.Member, wait time.Duration) {
	if (!a.gone[id] || a.departing[id] != nil) && a.isMissing(id) == nil {
		a.missing = append(a.missing, missing{id: id, since: now, lostAt: now.Add(wait), agent: agent})
	}
}

func (a *agents) forgive(id string) {
	a.missing = slices.DeleteFunc(a.missing, func(m missing) bool { return m.id == id })
}

func (a *agents) isMissing(id string) *missing {
	i := slices.IndexFunc(a.missing, func(m missing) bool { return m.id == id })
	if i < 0 {
		return nil
	}
	return &a.missing[i]
}

// await tells whether it is not known whether one of these is lost: it may register again.
func (a *agents) await(all []*member) bool {
	return slices.ContainsFunc(all, func(m *member) bool {
		return !m.lost && a.isMissing(m.ID) != nil
	})
}

func (a *agents) wake(at *earliest) {
	for _, m := range a.missing {
		if !m.declared {
			at.add(m.lostAt)
		}
	}
}

// declareLost makes the missing agents lost that have not registered again: first the spares, so
// that none of these takes over a seat.
func (a *agents) declareLost(t *turn, isSpare func(id string) bool) {
	due := func(m missing) bool { return !m.declared && !t.now.Before(m.lostAt) }
	if !slices.ContainsFunc(a.missing, due) {
		return
	}
	slices.SortStableFunc(a.missing, func(a, b missing) int {
		switch x, y := isSpare(a.id), isSpare(b.id); {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	})
	for i := range a.missing {
		m := &a.missing[i]
		if due(*m) {
			m.declared = true
			t.write(fmt.Sprintf("write that agent %q is lost", m.id),
				[]Cond{absent(run.Agents().Of(m.id)), absent(run.Lost().Of(m.id))},
				Op{Key: run.Lost().Of(m.id), Value: record.Loss{
					Ago: t.now.Sub(m.since), Agent: m.agent,
				}})
		}
	}
}

// remove notes that an agent is gone for good. known is what was known of it, or nil.
func (a *agents) remove(id string, known *record.Member) {
	if m := a.isMissing(id); m != nil {
		known = cmp.Or(known, m.agent)
	}
	if known = cmp.Or(known, a.present[id], &record.Member{}); !a.gone[id] {
		a.goneTasks += max(1, len(known.Tasks))
	}
	a.gone[id] = true
	a.forgive(id)
}

// depart notes that the job goes on without an agent that has yet to leave the store: it does so
// when nothing of its processes is left.
func (a *agents) depart(m *record.Member) {
	if a.departing == nil {
		a.departing = map[string]*record.Member{}
	}
	a.departing[m.ID] = m
}

func (a *agents) hasDeparted(id string) {
	delete(a.departing, id)
	a.forgive(id)
}

// followDeparting notes which of those that depart have left. Where agents have leases, the end of
// one may be why agent/ID is gone: who leaves puts lost/ID in the same transaction.
func (a *agents) followDeparting(now time.Time, c *settings) {
	for id, m := range a.departing {
		switch _, there := a.present[id]; {
		case there:
		case c.Elected:
			a.miss(now, id, m, c.returnTime())
		default:
			a.hasDeparted(id)
		}
	}
}
