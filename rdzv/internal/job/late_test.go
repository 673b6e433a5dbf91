package job

import (
	"testing"
	"time"

	"rdzv/rdzv/internal/record"
)

// An agent that joins an elastic job late waits for the next attempt, if there is a place for it.
func TestLateAgents(t *testing.T) {
	for name, c := range map[string]struct {
		agents         int
		agreed, isLast bool
		full, joins    bool
	}{
		"with a next attempt": {3, true, false, false, false},
		"the last attempt":    {3, true, true, true, false},
		"the job is full":     {2, true, false, true, false},
		"no world yet":        {3, false, true, false, true},
	} {
		m := in("", joinedAgent(0), joinedAgent(1))
		l := late{config: &settings{Config: Config{Tasks: c.agents}}, agents: &agents{}, members: m}
		l.add(joinedAgent(5))
		call := &turn{now: base}
		joined := l.answer(call, run.Attempt(0), c.agreed, c.isLast)
		if len(l.waiting) > 0 || (len(joined) == 1) != c.joins || (len(call.writes) == 0) != c.joins {
			t.Errorf("%s: joined %v, writes %v, waiting %v", name, joined, call.writes, l.waiting)
			continue
		}
		known := m.byID["agent-5"]
		if (known == nil) != c.full || known != nil && known.seat.Spare == c.joins {
			t.Errorf("%s: member %+v", name, known)
		}
		if !c.joins && call.writes[0].Ops[0].Value.(record.SeatValue).Full != c.full {
			t.Errorf("%s: %v", name, call.writes)
		}
	}
}

// A late agent is not refused while the one that it may replace may be lost, but at once if it is
// gone itself.
func TestLateAgentWaits(t *testing.T) {
	all := agents{present: map[string]*record.Member{}, gone: map[string]bool{}}
	all.miss(base, "agent-1", nil, time.Second)
	l := late{config: &settings{Config: Config{Tasks: 2}}, agents: &all, members: in("", joinedAgent(0), joinedAgent(1))}
	l.add(joinedAgent(5))
	call := &turn{now: base}
	if l.answer(call, run.Attempt(0), false, false); len(call.writes) > 0 || len(l.waiting) != 1 {
		t.Errorf("%v, waiting %v; want no answer", call.writes, l.waiting)
	}
	if l.answer(call, run.Attempt(0), true, false); len(call.writes) != 1 {
		t.Errorf("%v, want an answer when the world is agreed", call.writes)
	}
	l.add(joinedAgent(6))
	all.gone["agent-6"] = true
	call = &turn{now: base}
	joined := l.answer(call, run.Attempt(0), false, false)
	if len(joined) > 0 || len(call.writes) != 1 || !call.writes[0].Ops[0].Value.(record.SeatValue).Full {
		t.Errorf("joined %v, %v; want that it is refused", joined, call.writes)
	}
}
