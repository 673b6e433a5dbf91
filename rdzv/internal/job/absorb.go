package job

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/record"
)

// absorb notes a change of a key of this attempt.
func (a *attempt) absorb(t *turn, key string, c Change) {
	kind, id, _ := strings.Cut(key, "/")
	if c.Value == nil {
		a.absorbDeletion(kind, id)
		return
	}
	switch kind {
	case keys.Member:
		a.gather.admit(t, id, c.Value)
	case keys.Seat:
		a.takeSeat(id, c.Value)
	case keys.Outcome:
		a.outcomes.take(t.now, id, c.Value)
	case keys.Progress:
		a.outcomes.takeProgress(t.now, id, c.Value)
	case keys.Signal:
		a.absorbSignal(t, id, c)
	}
	m := a.members.byID[id]
	switch {
	case m == nil:
	}
}

func (a *attempt) absorbDeletion(kind, id string) {
	if kind == keys.Seat {
		delete(a.agreement.seats, id)
	}
}

// absorbSignal notes a change of a key below signal/.
func (a *attempt) absorbSignal(t *turn, name string, c Change) {
	switch name {
	case keys.Exports:
		if e, err := read[record.Exports](c.Value); err == nil {
			a.phase.exports = &e
		}
	case keys.World:
		if w, err := read[record.World](c.Value); err == nil && a.phase.world == nil {
			a.takeWorld(t, w)
		}
	case keys.Verdict:
		a.takeVerdict(t.now, c.Value)
	case keys.Settled:
		if v, err := read[record.Settled](c.Value); err == nil {
			a.end.takeSettled(v, c.Rev)
		}
	default:
		if id, ok := strings.CutPrefix(name, keys.Left+"/"); ok {
			a.takeLeft(t, id)
		}
	}
}

func (a *attempt) takeVerdict(now time.Time, value any) {
	if a.end.take(now, value, now.Add(a.config.SettleTimeout)) {
		a.leave.takeVerdict(a.end.verdict)
	}
}

// takeSeat notes the seat of an agent: of a world that is about to be published, or that of an
// agent that has joined late.
func (a *attempt) takeSeat(id string, value any) {
	seat, err := read[record.SeatValue](value)
	switch {
	case err != nil:
	case a.phase.world != nil || seat.Full:
		a.late.take(id, seat, a.phase.world != nil)
	default:
		a.agreement.takeSeat(id, seat)
	}
}

func (a *attempt) takeWorld(t *turn, w record.World) {
	a.began = cmp.Or(a.began, w.Began)
	waiting := slices.Concat(a.members.unseated, a.late.waiting)
	for id := range a.agreement.seats {
		a.late.remove(id)
	}
	a.agreement.takeWorld(t, w, waiting, a.agents.gone)
	a.outcomes.takeEarly(t.now)
	for _, m := range a.members.all {
		if m.lost {
			a.losses.loseRunning(t, m, &a.end, a.leave.unsettled(m.ID, a.keys))
		}
	}
}

// start agrees on the world if all have joined, and the workers may start.
func (a *attempt) start(t *turn, clear *overlap) {
	if a.leave.undecided() || !a.gather.ready(t.now, clear) {
		return
	}
	w := record.World{Job: a.config.Job, Attempt: a.number, Began: cmp.Or(a.began, t.now.UTC())}
	a.agreement.agree(t, w, &a.end)
}

// succeed wants the verdict that follows when all members have settled without one.
func (a *attempt) succeed() {
	if a.phase.world != nil && a.members.pending == 0 && !a.end.resultIs {
		a.end.resultIs = true
		a.end.want(record.VerdictOf(record.Done))
	}
}

func (a *attempt) wake(at *earliest, clear *overlap) {
	a.gather.wake(at, clear)
	if a.end.verdict == nil {
		a.success.wake(at, a.config)
	}
	a.end.wake(at)
}
