package job

import (
	"strings"
	"testing"

	"rdzv/rdzv/internal/record"
)

// in makes members of agents with one worker each, of which some have been lost.
func in(lost string, all ...record.Member) *members {
	m := &members{byID: map[string]*member{}}
	for i, one := range all {
		isLost := strings.Contains(lost, one.ID)
		seat := record.Seat{Tasks: []record.SeatTask{{Rank: i, Slots: 1}}, LocalSize: 1, Node: i}
		m.add(&member{Member: one, seat: seat, here: !isLost, lost: isLost})
	}
	return m
}

func onNode(m record.Member, node string, rank int) record.Member {
	m.Node, m.Host, m.NodeRank = node, node, rank
	return m
}

// An agent that joins takes over the seat of a lost one: of its node rank, else of its node, or any.
func TestTakeVacantSeat(t *testing.T) {
	agent := func(i int, node string, rank int) record.Member { return onNode(joinedAgent(i), node, rank) }
	numbered := []record.Member{agent(0, "a", 0), agent(1, "b", 1), agent(2, "c", 2)}
	unnumbered := []record.Member{agent(0, "a", record.Unknown), agent(1, "b", record.Unknown), agent(2, "c", record.Unknown)}
	two := agent(7, "x", record.Unknown)
	two.Tasks = record.Unplaced(2)
	for name, c := range map[string]struct {
		before  []record.Member
		lost    string
		next    record.Member
		want    string // whose seat
		warning string
	}{
		"its node rank":       {numbered, "agent-0 agent-2", agent(7, "x", 2), "c", ""},
		"another node rank":   {numbered, "agent-0", agent(7, "x", 2), "", ""},
		"any":                 {unnumbered, "agent-0 agent-2", agent(7, "x", record.Unknown), "a", ""},
		"its node":            {unnumbered, "agent-0 agent-2", agent(7, "c", record.Unknown), "c", ""},
		"a node that has one": {unnumbered, "agent-0", agent(7, "b", record.Unknown), "", ""},
		"nobody is lost":      {unnumbered, "", agent(7, "x", record.Unknown), "", ""},
		"more workers":        {unnumbered, "agent-1", two, "", "it runs 2 workers, not 1"},
	} {
		m := in(c.lost, c.before...)
		taken, warning := m.takeVacantSeat(c.next)
		if taken != (c.want != "") || taken && m.byID[c.next.ID].replaces != c.want {
			t.Errorf("%s: taken %t, %+v; want that of %q", name, taken, m.byID[c.next.ID], c.want)
		}
		if (warning != nil) != (c.warning != "") ||
			warning != nil && !strings.HasSuffix(warning.Error(), c.warning) {
			t.Errorf("%s: %v, want %q", name, warning, c.warning)
		}
	}
}

// The seat of an agent that is lost while others gather is that of a spare, or vacant.
func TestMarkVacant(t *testing.T) {
	for want, spare := range map[string]bool{
		"waiting for an agent in place of node1 (restart 1 of 3)": false, "node2 takes its place": true,
	} {
		m := in("", joinedAgent(0), joinedAgent(1), joinedAgent(2))
		m.all[2].seat.Spare = spare
		warning := m.markVacant(m.all[1], 1, 3)
		if !strings.HasSuffix(warning.Error(), want) {
			t.Errorf("%v, want %q", warning, want)
		}
		if n := len(m.vacancies()); (n == 0) != spare || m.here != 2 || m.pending != 2 {
			t.Errorf("%d vacant seats, %d here, %d pending", n, m.here, m.pending)
		}
	}
}
