package job

import (
	"fmt"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/record"
)

// What rank 0's agent exports is the key signal/exports. If it can prevent a start, each agent puts
// ready/ID when it has read it, and the leader signal/start when all have.

// confirmation is which agents have confirmed that they can start.
type confirmation struct {
	count   int
	started bool // or the decision is on its way
}

// take notes the confirmation of a member, or that it cannot start.
func (c *confirmation) take(m *member, value any, e *ending) {
	if m.ready || m.seat.Spare {
		return
	}
	m.ready = true
	c.count++
	r, err := read[Readiness](value)
	if err == nil {
		err = record.CheckProblems(r.Problems)
	}
	if err != nil {
		e.want(record.NotReady(fmt.Sprintf("cannot read whether %s is ready: %v",
			record.AgentName(m.lostVerdict()), err)))
		return
	}
	m.Problems, m.Facts = r.Problems, r.Facts
}

// complete tells, once, that all agents of a world have confirmed.
func (c *confirmation) complete(w *World, exports *Exports) bool {
	if w == nil || exports == nil || !exports.Confirm || c.started || c.count < w.Agents {
		return false
	}
	c.started = true
	return true
}

// start lets the workers start.
func (c *confirmation) start(t *turn, k keys.Attempt) {
	t.write("start the workers", []Cond{absent(k.Verdict()), absent(k.Start())},
		Op{Key: k.Start(), Value: Started{}})
}
