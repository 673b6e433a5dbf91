package job

import (
	"fmt"

	"rdzv/rdzv/internal/record"
)

// What rank 0's agent exports is the key signal/exports. If it can prevent a start, each agent puts
// ready/ID when it has read it, and the leader signal/start when all have.

// confirmation is which agents have confirmed that they can start.
type confirmation struct {
	count   int
	started bool // or the decision is on its way
}

// takeReadiness notes the confirmation of an agent.
func (s *State) takeReadiness(id string, value any) {
	a := s.attempt
	m := a.members.byID[id]
	if m == nil || m.ready || m.seat.Spare || a.gather.world == nil {
		return
	}
	m.ready = true
	a.ready.count++
	r, err := read[Readiness](value)
	if err == nil {
		err = record.CheckProblems(r.Problems)
	}
	if err != nil {
		a.end.want(record.NotReady(fmt.Sprintf("cannot read whether %s is ready: %v",
			record.AgentName(m.lostVerdict()), err)))
		return
	}
	m.Problems, m.Facts = r.Problems, r.Facts
}

// startWorkers lets the workers start when all have confirmed, or ends the job if some agent has a
// problem.
func (s *State) startWorkers(w *writes) {
	a := s.attempt
	g := &a.gather
	if g.world == nil || g.exports == nil || !g.exports.Confirm || a.ready.started ||
		a.ready.count < g.world.Agents || a.end.verdict != nil {
		return
	}
	a.ready.started = true
	if v := s.check(a.members.present(), nil); s.ends(v) {
		a.end.want(v)
		return
	}
	w.add("start the workers", []Cond{absent(a.keys.verdict()), absent(a.keys.start())},
		Op{Key: a.keys.start(), Value: Started{}})
}
