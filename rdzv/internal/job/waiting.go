package job

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"rdzv/rdzv/internal/placement"
	"rdzv/rdzv/internal/record"
)

// report tells from time to time which agents are missing.
func (g *gathering) report(t *turn) {
	if g.config.NextWaiting == nil || g.phase.later || !g.open() {
		return
	}
	if g.waited > 0 && !t.now.Before(g.begin.Add(g.waited)) {
		t.notify(record.Waiting{Roster: g.roster(), Waited: record.Seconds(g.waited)})
		g.waited = g.config.NextWaiting(g.waited)
	}
	if g.waited == 0 {
		g.waited = g.config.NextWaiting(0)
	}
}

// briefDelay is not worth a message.
const briefDelay = 2 * time.Second

// reportDelay tells once that the workers of an attempt are not started, although all agents are
// here, because processes of the attempt before may run.
func (g *gathering) reportDelay(t *turn, attempt int, clear *overlap) {
	if !g.open() || !g.phase.later || !g.allHere() {
		g.allSince = time.Time{}
		return
	}
	if g.allSince.IsZero() {
		g.allSince = t.now
	}
	wait, passed := clear.clearAt.Sub(t.now), t.now.Sub(g.allSince)
	switch departing := slices.Collect(maps.Values(g.agents.departing)); {
	case g.toldDelay:
	case wait > briefDelay:
		g.toldDelay = true
		t.warn(fmt.Errorf("attempt %d starts in %v: processes of the lost agent on %s may run until then",
			attempt, wait.Round(time.Second), cmp.Or(clear.host, "another node")))
	case len(departing) > 0 && passed >= briefDelay:
		g.toldDelay = true
		t.warn(fmt.Errorf("attempt %d starts when the processes on %s, which leaves the job, have ended",
			attempt, departing[0].Host))
	}
}

// roster is who has joined, and who is missing.
func (g *gathering) roster() record.Roster {
	c := g.config
	r := RosterOf(g.members.present(), c.Tasks, c.Nodes)
	r.Min, r.Unattended = c.MinTasks, c.Unattended
	if c.Refused != nil {
		r.Refused, r.MoreRefused = record.Cut(c.Refused())
	}
	if c.OtherVersion != nil {
		r.OtherVersion, r.MoreOtherVersion = record.Cut(c.OtherVersion())
	}
	return r
}

// limit ends an attempt whose agents have not all joined in time, and the last call.
func (g *gathering) limit(now time.Time) {
	if !g.open() {
		return
	}
	if !g.lastCall.IsZero() && !now.Before(g.lastCall) {
		g.called = true
	}
	if at := g.deadline(); g.timedOut || at.IsZero() || now.Before(at) {
		return
	}
	switch { // one of these may be lost before the world is agreed
	case g.allHere():
	case g.config.elastic() && !g.phase.later && g.members.here >= g.config.MinTasks:
		g.called = true
	default:
		g.timedOut = true
		g.end.want(g.incomplete(now))
	}
}

// incomplete is the verdict when not all agents have joined in time.
func (g *gathering) incomplete(now time.Time) record.Verdict {
	if v := g.members.vacantTooLong(now.Sub(g.begin)); v != nil {
		return *v
	}
	all := g.members.present()
	inOrder := placement.InOrder(all)
	if len(inOrder) > 0 && inOrder[0].FirstTask().Rank <= 0 && inOrder[0].NodeRank <= 0 {
		withRank0Problems(all, inOrder[0].ID) // as far as it is known by now which agent has rank 0
	}
	v := record.VerdictOf(record.Incomplete)
	v.Roster = new(g.roster())
	v.Problems, v.MoreProblems = problemsOf(all)
	return v
}

// withRank0Problems adds to a member's problems those that it has if rank 0 is one of its workers.
func withRank0Problems(all []record.Member, id string) {
	for i, m := range all {
		if m.ID == id {
			all[i].Problems = slices.Concat(m.Problems, m.Rank0Problems)
		}
	}
}
