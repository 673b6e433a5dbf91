package rdzv

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// arrive takes in a member; with the last one the world can begin.
func (l *Leader) arrive(ctx context.Context, id, key string, value []byte) error {
	m, err := decode[Member](key, value)
	if err != nil {
		return err
	}
	if m.ID != id || l.begun {
		return nil // not ours, or too late: nobody waits for it
	}
	l.byID[id] = len(l.members)
	l.members = append(l.members, m)
	if len(l.members) < l.config.Agents || l.verdict != nil {
		return nil
	}
	return l.begin(ctx)
}

// begin seats the members, all of whom are here, or says why it cannot.
func (l *Leader) begin(ctx context.Context) error {
	l.begun = true
	if v, ok := l.problems(); ok {
		return l.say(ctx, v)
	}
	if m, ok := l.gone(); ok {
		return l.say(ctx, l.lossOf(m))
	}
	p, err := assign(l.members)
	if err != nil {
		return l.say(ctx, l.unready(err.Error(), 0))
	}
	l.seats = p.seats
	if err := l.writeSeats(ctx); err != nil {
		return err
	}
	p.world.Job, p.world.Attempt = l.config.Job, l.config.Attempt
	p.world.StoreHost = storeHost(l.members)
	if _, err := l.client.Put(ctx, l.keys.world(), encode(p.world)); err != nil {
		return fmt.Errorf("cannot publish the world of job %q: %w", l.config.Job, err)
	}
	return nil
}

// storeHost is the node of the store, "" where no member hosts it.
func storeHost(members []Member) string {
	for _, m := range members {
		if m.Hosting {
			return m.Host
		}
	}
	return ""
}

func (l *Leader) writeSeats(ctx context.Context) error {
	for some := range slices.Chunk(l.members, seatsPerTxn) {
		ops := make([]clientv3.Op, 0, len(some))
		for _, m := range some {
			ops = append(ops, clientv3.OpPut(l.keys.seat(m.ID), encode(l.seats[m.ID])))
		}
		if _, err := l.client.Txn(ctx).Then(ops...).Commit(); err != nil {
			return fmt.Errorf("cannot write the seats of job %q: %w", l.config.Job, err)
		}
	}
	return nil
}

// problems gathers what keeps members from running, and whether they run the
// same line at all.
func (l *Leader) problems() (Verdict, bool) {
	var texts []string
	code := 0
	for _, m := range l.members {
		if m.Problem.Code == 0 {
			continue
		}
		if code == 0 {
			code = m.Problem.Code
		}
		texts = append(texts, m.Host+": "+m.Problem.Text)
	}
	if code != 0 {
		slices.Sort(texts)
		return l.unready(strings.Join(slices.Compact(texts), "\n"), code), true
	}
	first := l.members[0]
	for _, m := range l.members[1:] {
		if m.Line != "" && first.Line != "" && m.Line != first.Line {
			return l.unready(fmt.Sprintf("%s and %s run different lines: is one of them of another job?", name(first), name(m)), 0), true
		}
	}
	return Verdict{}, false
}

// unready is the verdict on a job that could not begin. Code 0 leaves the exit
// code to the reader.
func (l *Leader) unready(text string, code int) Verdict {
	return Verdict{Kind: Unready, Rank: Any, LocalRank: Any, Text: text, Code: code}
}

// gone finds a member that was lost before the world began.
func (l *Leader) gone() (Member, bool) {
	for _, m := range l.members {
		if l.lost[m.ID] {
			return m, true
		}
	}
	return Member{}, false
}

// lossOf is the verdict on an agent that went without a word.
func (l *Leader) lossOf(m Member) Verdict {
	v := Verdict{Kind: Lost, By: m.ID, Host: m.Host, PID: m.PID, Rank: m.Rank, LocalRank: m.LocalRank}
	if seat, seated := l.seats[m.ID]; seated {
		v.Rank, v.LocalRank = seat.Rank, seat.LocalRank
	}
	v.Text = fmt.Sprintf("lost the agent of %s (process %d on %s): it went without a word", ranks(v.Rank, m.Slots), m.PID, m.Host)
	return v
}

// ranks names n ranks from first on, for people.
func ranks(first, n int) string {
	switch {
	case first == Any:
		return "a node"
	case n == 1:
		return fmt.Sprintf("rank %d", first)
	default:
		return fmt.Sprintf("ranks %d to %d", first, first+n-1)
	}
}

// settle takes in how an agent's workers ended. An outcome with a failure that
// no verdict preceded is the verdict: its agent could not say it itself.
func (l *Leader) settle(ctx context.Context, id, key string, value []byte) error {
	o, err := decode[Outcome](key, value)
	if err != nil {
		return err
	}
	if l.settled[id] {
		return nil
	}
	l.settled[id] = true
	l.outcomes = append(l.outcomes, o)
	for _, w := range o.Workers {
		if !w.ok() {
			return l.say(ctx, failure(id, o.Host, w))
		}
	}
	if l.begun && l.unsettled() == 0 {
		return l.say(ctx, Verdict{Kind: Done, Rank: Any, LocalRank: Any})
	}
	return nil
}
