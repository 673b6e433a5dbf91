package job

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// leader is the model of the shell around a State: it watches, applies, and commits with the
// condition that its agent still leads, one transaction after another.
type leader struct {
	*agent
	state   *State
	created int64 // of its agent's key
	cursor  int
	writes  []Write
	busy    bool
	timer   time.Duration
	watch   watcher
	stalled bool // its watch is interrupted
}

// elect makes an agent the leader when all that joined before it are gone.
func (a *agent) elect() {
	if a.over || !a.alive || a.lead != nil || !a.member || a.cut {
		return
	}
	var snapshot []Change
	var own int64
	cursor := 0
	first := false
	a.request(func() bool {
		e, there := a.keys[run.Agents().Of(a.id)]
		first = there
		for key, other := range a.keys {
			if strings.HasPrefix(key, "agent/") && other.create < e.create {
				first = false
			}
		}
		own, cursor, snapshot = e.create, len(a.log), a.snapshot()
		return true
	}, func(bool) {
		if !first || a.over || a.lead != nil || a.removed {
			return
		}
		a.start(own, cursor, snapshot)
	})
}

func (a *agent) start(own int64, cursor int, snapshot []Change) {
	l := &leader{agent: a, created: own, cursor: cursor}
	a.lead = l
	if a.led {
		a.kinds[successors] = true
	}
	a.led = true
	a.say("%s leads", a.id)
	l.watch.wake = func() { l.watch.pending = false; a.now2(l.wake) }
	a.watchers = append(a.watchers, &l.watch)
	l.write(l.restore(snapshot))
}

// restore makes the state from what is in the store.
func (l *leader) restore(snapshot []Change) (writes []Write) {
	c := l.config
	c.AllReturnTime = 15 * time.Second
	c.Revoked = func() bool { return l.revokedAt > 0 && l.now < l.revokedAt+time.Minute }
	l.state, writes, _ = Restore(l.time(), c.Config, c.Store, snapshot)
	return writes
}

// interrupt is that the store ends the watch of the leader, which reads all keys again later.
func (l *leader) interrupt() {
	if l.stalled || !l.current() {
		return
	}
	l.say("the watch of %s is interrupted", l.id)
	l.kinds[interrupted] = true
	l.stalled = true
	l.later(l.config.ReturnTime+l.latency(), func() {
		var snapshot []Change
		cursor := 0
		l.request(func() bool { cursor, snapshot = len(l.log), l.snapshot(); return true }, func(bool) {
			if l.stalled = false; !l.current() || l.busy || l.removed {
				return
			}
			before := l.state
			writes := l.restore(snapshot)
			l.state.Continue(before)
			l.cursor, l.timer = cursor, 0
			l.write(writes)
		})
	})
}

// interruptAtLoss interrupts the watch of a leader that has written that an agent is lost, and has
// yet to read that.
func (s *simulation) interruptAtLoss() {
	w, last := &watcher{}, 0
	w.wake = func() {
		w.pending = false
		for ; last < len(s.log); last++ {
			for _, c := range s.log[last].changes {
				if strings.HasPrefix(c.Key, "lost/") && c.Value != nil {
					for _, a := range s.agents {
						if a.lead != nil && a.lead.cursor <= last {
							a.lead.interrupt()
						}
					}
				}
			}
		}
	}
	s.watchers = append(s.watchers, w)
}

// current tells whether this is still the leader of its agent.
func (l *leader) current() bool { return l.lead == l && l.alive && !l.over0() }

// over0 tells whether the agent has left; a leader that leaves has written all.
func (l *leader) over0() bool { return l.over }

func (l *leader) write(writes []Write) {
	l.writes = append(l.writes, writes...)
	if !l.busy {
		l.next()
	}
}

// next commits the next transaction or, if there is none, applies what has happened.
func (l *leader) next() {
	if !l.current() {
		return
	}
	if len(l.writes) == 0 {
		l.apply()
		return
	}
	w := l.writes[0]
	ops := w.Ops
	if len(ops) > l.opsPerTxn { // the rest follows in transactions of its own
		l.kinds[parts] = true
		ops = ops[:l.opsPerTxn]
		l.writes[0].Ops = w.Ops[l.opsPerTxn:]
	} else {
		l.writes = l.writes[1:]
	}
	l.busy = true
	deposed := false
	l.transact(func() bool {
		e, there := l.keys[run.Agents().Of(l.id)]
		if deposed = !l.hosted && (!there || e.create != l.created); deposed {
			return false
		}
		return l.commit("", w.If, ops...)
	}, func(done bool) {
		l.busy = false
		if !done && len(ops) < len(w.Ops) {
			l.writes = l.writes[1:]
		}
		if deposed {
			l.say("%s is deposed", l.id)
			if l.lead == l {
				l.lead = nil
				l.later(time.Second, func() { l.elect() })
			}
			return
		}
		l.next()
	})
}

func (l *leader) wake() {
	if l.current() && !l.busy && !l.cut && !l.stalled {
		l.apply()
	}
}

func (l *leader) apply() {
	if l.busy || l.cut || l.stalled {
		return
	}
	for l.cursor < len(l.log) {
		r := l.log[l.cursor]
		l.cursor++
		writes, _ := l.state.Apply(l.time(), r.changes...)
		if l.compare(r.rev, writes); len(writes) > 0 {
			l.write(writes)
			return
		}
	}
	if writes, _ := l.state.Apply(l.time()); len(writes) > 0 {
		l.write(writes)
		return
	}
	l.schedule()
}

// schedule wakes the leader when its state asks for that.
func (l *leader) schedule() {
	at := l.state.Wake()
	if at.IsZero() {
		return
	}
	d := at.Sub(base)
	if d == l.timer && d > l.now {
		return
	}
	if d <= l.now {
		if d == l.timer {
			l.fail("the state of %s asks again and again for the same time", l.id)
			return
		}
	}
	l.timer = d
	l.after(max(0, d-l.now), func() { l.now2(l.wake) })
}

// compare restores a state from what is in the store, and compares it with the one that has lived
// through it, if nothing is on its way.
func (l *leader) compare(rev int64, writes []Write) {
	if rev != l.rev || len(writes) > 0 || l.rng.IntN(8) > 0 || l.removed || l.hosted {
		return
	}
	if len(l.state.agents.missing) > 0 || l.state.attempt.inFlight() || l.revokedAt > 0 {
		return
	}
	l.kinds[compared] = true
	restored, _, _ := Restore(l.time(), l.config.Config, l.config.Store, l.snapshot())
	if len(restored.agents.missing) > 0 {
		return
	}
	if lived, now := fingerprint(l.state), fingerprint(restored); lived != now {
		l.fail("at revision %d the state that has lived is\n%s\nand the restored one\n%s", rev, lived, now)
	}
}

// inFlight tells whether something has been decided that is not in the store yet.
func (a *attempt) inFlight() bool {
	waiting := a.phase.publishing() && a.end.verdict == nil
	deciding := a.end.decided && a.end.settled == nil
	return waiting || deciding || len(a.end.wanted) > 0 || len(a.late.waiting) > 0 || len(a.leave.asked) > 0
}

// fingerprint is what decides what follows.
func fingerprint(s *State) string {
	a := s.attempt
	if a.end.over {
		return "over"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "attempt %d complete %t world %t verdict %v decided %t over %t failures %d pending %d\n",
		a.number, a.phase.world != nil, a.phase.world != nil, a.end.verdict, a.end.decided, a.end.over,
		len(s.next.failures), a.members.pending)
	fmt.Fprintln(&b, "departing", slices.Sorted(maps.Keys(s.agents.departing)))
	var lines []string
	for _, m := range a.members.all {
		if m.lost && (s.config.elastic() || a.phase.world != nil) && m.seat.Spare {
			continue
		}
		if m.lost && a.phase.world == nil && (s.config.elastic() || !a.phase.later) {
			continue // it has no seat, and the job has ended or goes on without it
		}
		id := m.ID
		if m.vacant() {
			id = "vacant"
		}
		lines = append(lines, fmt.Sprintf("%s ranks %d spare %t here %t settled %t lost %t replaces %q",
			id, m.seat.AllRanks(), m.seat.Spare, m.here, m.settled, m.lost, m.replaces))
	}
	if a.phase.world != nil || !a.phase.later || s.config.elastic() { // the order decides nothing
		slices.Sort(lines)
	}
	b.WriteString(strings.Join(lines, "\n"))
	return b.String()
}
