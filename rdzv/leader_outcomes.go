package rdzv

import (
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/restart"
)

// readOutcome handles the outcome of an agent, which has settled.
func (l *Leader) readOutcome(ctx context.Context, id string, value []byte) error {
	m := l.members[id]
	o, err := decode[Outcome](value)
	switch {
	case err == nil && o.Withdrawn:
		return l.withdraw(ctx, id)
	case m == nil, m.settled:
		return nil
	}
	if err != nil {
		m.settled = true
		if !m.lost {
			l.pending--
		}
		v := m.lostVerdict()
		v.Text = fmt.Sprintf("lost %s: cannot read its outcome: %v", agentName(v), err)
		return l.writeVerdict(ctx, v)
	}
	return l.settle(ctx, m, o)
}

// settle handles that an agent has settled.
func (l *Leader) settle(ctx context.Context, m *memberState, o Outcome) error {
	m.settled = true
	if !m.lost {
		l.pending--
	}
	m.Links, m.ending = o.Links, o.Ending
	l.outcomes = append(l.outcomes, o)
	l.noteSuccesses(o)
	return l.judge(ctx, m, o)
}

// judge writes the verdict that follows from an outcome, if any. A failure follows from it
// if the agent could not report the failure itself.
func (l *Leader) judge(ctx context.Context, m *memberState, o Outcome) error {
	if w, failed := o.failed(); failed {
		return l.writeVerdict(ctx, failedVerdict(m.ID, o.Host, w))
	}
	if ran := len(o.Workers); ran < m.Slots && l.config.Check == nil {
		text := fmt.Sprintf("ran only %d of its %d workers", ran, m.Slots)
		if ran == 0 {
			text = "did not run its " + plural("worker", m.Slots)
		}
		return l.writeVerdict(ctx, unready(agentName(m.lostVerdict())+" "+text))
	}
	if l.complete && l.pending == 0 && l.verdict == nil {
		return l.writeVerdict(ctx, l.result())
	}
	l.noteSuccess(o.Workers)
	return nil
}

// result is the verdict when all workers have succeeded, or all nodes have been checked.
func (l *Leader) result() Verdict {
	if l.config.Check == nil {
		return verdictOf(Done)
	}
	links, more := cut(l.gathered(l.allMembers()))
	v := l.found
	v.MoreProblems += more
	for _, p := range links {
		p.Hosts, p.MoreHosts = cut(p.Hosts)
		v.Problems = append(v.Problems, p)
	}
	if len(v.Problems) == 0 {
		return verdictOf(Done)
	}
	return v
}

// lose handles that an agent is lost, for the reason that is in the store.
func (l *Leader) lose(ctx context.Context, id string, why loss) error {
	l.awaitWorkers(id, why)
	if m := l.members[id]; m != nil {
		m.silent = why.After
	}
	return l.markLost(ctx, id)
}

// markLost handles the loss of an agent. Its member or outcome may be in the store and not
// yet read here. The loss of an agent that has settled does not end the job.
func (l *Leader) markLost(ctx context.Context, id string) error {
	m := l.members[id]
	l.gone[id] = true
	delete(l.preparing, id)
	switch {
	case m == nil && (l.complete || l.later() || l.elastic()):
		return nil // one agent too many
	case m == nil:
		v := verdictOf(Lost)
		v.By = id
		return l.writeVerdict(ctx, v, l.keys.member(id))
	case m.lost:
		return nil
	case l.elastic() && !l.complete && l.verdict == nil:
		return l.drop(ctx, m)
	case l.later() && !l.complete && l.verdict == nil && l.mayReplace(m):
		return l.vacate(ctx, m)
	}
	m.lost = true
	if m.seat.Spare && l.complete && l.verdict == nil {
		l.warn(l.spareLost(m))
	}
	if m.settled {
		return nil
	}
	l.pending--
	m.lostAt = time.Now()
	return l.writeVerdict(ctx, l.lossOf(m), l.keys.outcome(id))
}

// lossOf returns the verdict when an agent is lost. If it had no launcher, and others wait for the
// world in an etcd cluster, those join again: whoever has killed it may start it again too.
func (l *Leader) lossOf(m *memberState) Verdict {
	if l.elected() && !l.complete && !l.later() && m.occupiesHost() {
		return verdictOf(Moved)
	}
	if l.elastic() && !l.enoughMayJoin() {
		return l.tooFew(m)
	}
	return m.lostVerdict()
}

// lostVerdict returns the verdict about the agent if it is lost.
func (m *memberState) lostVerdict() Verdict {
	v := Verdict{
		Kind: Lost, By: m.ID, Host: m.Host, PID: m.PID,
		Rank: m.Rank, LocalRank: m.LocalRank, Ranks: 1, Silent: m.silent,
	}
	if m.seat.Slots > 0 { // the world is agreed
		v.Rank, v.LocalRank, v.Ranks = m.seat.Rank, m.seat.LocalRank, m.seat.Slots
	}
	return v
}

// writeVerdict writes a verdict unless there is one or a key in unless exists.
func (l *Leader) writeVerdict(ctx context.Context, v Verdict, unless ...string) error {
	_, err := l.endWith(ctx, v, unless...)
	return err
}

// endWith is writeVerdict that reports whether this verdict counts. If it does not know that, the
// watch delivers the one that does.
func (l *Leader) endWith(ctx context.Context, v Verdict, unless ...string) (bool, error) {
	if l.verdict != nil {
		return false, nil
	}
	conditions, put := l.keys.putVerdict(v, l.term.lease, unless...)
	written, err := l.commitIf(ctx, conditions, put)
	if l.endsInFull(err, v) { // writeSettled lets the agents know
		written, err = true, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot write the verdict %q: %w", v.Error(), err)
	}
	if written {
		l.takeVerdict(v)
	}
	return written, nil
}

// writeSettled publishes that all agents have settled or were lost, or that the timeout has
// expired, and the next attempt, or why there is none.
func (l *Leader) writeSettled(ctx context.Context, next *Leader, d restart.Decision) error {
	var unsettled []string
	for _, m := range l.joined {
		if !m.settled && !m.lost {
			unsettled = append(unsettled, agentName(m.lostVerdict()))
		}
	}
	s := settled{Cause: l.cause, Unsettled: list(cut(unsettled)), NoRestart: d.Reason}
	ops := []clientv3.Op{}
	if next != nil {
		s.Restart = &Restart{Attempt: next.config.Attempt, Delay: d.Delay, Vacant: next.vacancies(),
			Missing: max(0, next.config.MinAgents-len(next.joined))}
		ops = append(ops, l.put(l.keys.run.latest(), encode(next.latest())))
	}
	if m := l.members[l.verdict.By]; m != nil && l.verdict.Kind == Failed {
		s.Unreported, s.Successes = m.lost, l.successesBefore()
	}
	if l.verdict.Kind == Ended {
		s.Code = endedCode(l.verdict.Signal, l.outcomes)
	}
	ops = append(ops, l.put(l.keys.settled(), encode(s)))
	err := l.commit(ctx, nil, ops...)
	if l.endsInFull(err, *l.verdict) {
		err = l.endInFull(ctx)
	}
	if err != nil {
		return fmt.Errorf("cannot write that all agents of job %q have settled: %w", l.config.Job, err)
	}
	return nil
}

// successTime is how long before a failure a success is no coincidence.
const successTime = 2 * time.Second

// success is when a worker exited with 0, by the leader's clock.
type success struct {
	rank int
	at   time.Time
}

// noteSuccesses records the successes of an outcome. The clocks of different hosts are not
// comparable: the time is that at which the leader receives the outcome, less the worker's age,
// which its agent has measured.
func (l *Leader) noteSuccesses(o Outcome) {
	for _, w := range o.Workers {
		if w.ok() && !w.Stopped {
			l.successes = append(l.successes, success{w.Rank, time.Now().Add(-w.Age)})
		}
	}
}

// successesBefore returns the successes shortly before the failure, nil if there are none.
func (l *Leader) successesBefore() *Successes {
	failedAt := l.verdictAt.Add(-l.verdict.Held)
	var s Successes
	var ranks []int
	for _, e := range l.successes {
		if before := failedAt.Sub(e.at); before >= 0 && before <= successTime {
			ranks = append(ranks, e.rank)
			s.Before = max(s.Before, before)
		}
	}
	if len(ranks) == 0 {
		return nil
	}
	slices.Sort(ranks)
	s.Ranks, s.More = cut(ranks)
	return &s
}

// readProgress handles which workers of an agent have ended. A failure ends the job if the agent
// could not report it. It ignores a value that cannot be decoded, because the agent's outcome
// decides.
func (l *Leader) readProgress(ctx context.Context, id string, value []byte) error {
	m := l.members[id]
	o, err := decode[Outcome](value)
	if m == nil || err != nil {
		return nil
	}
	m.ended = o.Workers
	if i := slices.IndexFunc(o.Workers, Worker.failedAlone); i >= 0 {
		return l.writeVerdict(ctx, failedVerdict(m.ID, o.Host, o.Workers[i]))
	}
	l.noteSuccess(o.Workers)
	return nil
}

// noteSuccess starts the timers when the first worker has succeeded.
func (l *Leader) noteSuccess(workers []Worker) {
	i := slices.IndexFunc(workers, Worker.ok)
	if i < 0 || l.firstSuccess != nil || l.verdict != nil {
		return
	}
	l.firstSuccess = &workers[i]
	l.reportTime = time.After(l.config.stragglingAfter)
	if l.config.ExitTimeout > 0 {
		l.exitTimeout = time.After(l.config.ExitTimeout)
	}
}

func (l *Leader) reportStragglers() {
	if l.config.Straggling == nil || l.verdict != nil {
		return
	}
	if s := l.stragglers(l.config.stragglingAfter); len(s.Running) > 0 {
		l.config.Straggling(s)
	}
}

func (l *Leader) stopStragglers(ctx context.Context) error {
	s := l.stragglers(l.config.ExitTimeout)
	if len(s.Running) == 0 {
		return nil // the last outcomes are being written
	}
	v := verdictOf(Straggling)
	v.Stragglers = &s
	return l.writeVerdict(ctx, v)
}

func (l *Leader) stragglers(after time.Duration) Stragglers {
	var running []Straggler
	for _, m := range l.joined {
		if m.settled || m.lost {
			continue
		}
		for rank := m.seat.Rank; rank < m.seat.Rank+m.Slots; rank++ {
			if !slices.ContainsFunc(m.ended, func(w Worker) bool { return w.Rank == rank }) {
				running = append(running, Straggler{rank, m.Host})
			}
		}
	}
	s := Stragglers{First: l.firstSuccess.Rank, After: after}
	s.Running, s.More = cut(running)
	return s
}
