package rdzv

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// opsPerTxn is the most operations that etcd takes in one transaction.
const opsPerTxn = 128

// arrive takes in a member; with the last one the world can begin.
func (l *Leader) arrive(ctx context.Context, id, key string, value []byte) error {
	if _, known := l.agents[id]; known || l.begun {
		return nil // said twice, or one too many: it finds that it has no seat
	}
	m, err := decode[Member](key, value)
	if err == nil {
		err = m.check()
	}
	if err == nil && m.ID != id {
		err = fmt.Errorf("it calls itself %.64q", m.ID)
	}
	if err != nil {
		return l.say(ctx, unready(fmt.Sprintf("cannot take in agent %.64q: %v", id, err)))
	}
	a := &agent{Member: m}
	l.agents[id] = a
	l.order = append(l.order, a)
	l.hurry(m.JoinWithin)
	if l.early[id] {
		a.lost = true
		return l.say(ctx, l.lossOf(a))
	}
	l.open++
	if len(l.order) < l.config.Agents || l.verdict != nil {
		return nil
	}
	return l.begin(ctx)
}

// hurry takes in how long a member goes on waiting for the others, 0 for ever: the
// member that gives up first ends the job.
func (l *Leader) hurry(within time.Duration) {
	by := time.Now().Add(within)
	if within > 0 && (l.joinBy.IsZero() || by.Before(l.joinBy)) {
		l.joinBy, l.late = by, time.After(within)
	}
}

func (l *Leader) tellWaiting() {
	if l.config.Waiting != nil && !l.begun && l.verdict == nil {
		l.config.Waiting(l.roster())
	}
}

// giveUp ends a job whose agents have not all come in time.
func (l *Leader) giveUp(ctx context.Context) error {
	if l.begun {
		return nil
	}
	roster := l.roster()
	v := Verdict{Kind: Incomplete, Rank: Any, LocalRank: Any, Roster: &roster}
	v.Problems, v.MoreProblems = l.problems()
	return l.say(ctx, v)
}

// begin seats the members, all of whom are here, or says why it cannot.
func (l *Leader) begin(ctx context.Context) error {
	l.begun = true
	if problems, more := l.problems(); len(problems) > 0 {
		v := unready("")
		v.Problems, v.MoreProblems = problems, more
		return l.say(ctx, v)
	}
	p, err := assign(l.members())
	if err != nil {
		return l.say(ctx, unready(err.Error()))
	}
	for _, a := range l.order {
		a.seat = p.seats[a.ID]
	}
	p.world.Job, p.world.Attempt = l.config.Job, l.config.Attempt
	return l.publish(ctx, p)
}

func (l *Leader) members() []Member {
	members := make([]Member, len(l.order))
	for i, a := range l.order {
		members[i] = a.Member
	}
	return members
}

// publish writes the seats, and with the last of them the world, unless the job
// has ended meanwhile: no worker is started for nothing.
func (l *Leader) publish(ctx context.Context, p plan) error {
	ops := make([]clientv3.Op, 0, len(l.order)+1)
	for _, a := range l.order {
		ops = append(ops, clientv3.OpPut(l.keys.seat(a.ID), encode(a.seat)))
	}
	ops = append(ops, clientv3.OpPut(l.keys.world(), encode(p.world)))
	for some := range slices.Chunk(ops, opsPerTxn) {
		if _, err := commit(ctx, l.client, []clientv3.Cmp{absent(l.keys.verdict())}, some, nil); err != nil {
			return fmt.Errorf("cannot publish the world of job %q: %w", l.config.Job, err)
		}
	}
	return nil
}

func (l *Leader) roster() Roster {
	r := Roster{Here: len(l.order), Agents: l.config.Agents}
	here := map[int]bool{}
	var hosts []string
	for _, a := range l.order {
		here[a.Rank] = true
		hosts = append(hosts, a.Host)
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	r.Hosts = hosts[:min(len(hosts), told)]
	r.MoreHosts = len(hosts) - len(r.Hosts)
	for rank := 0; len(l.order) > 0 && !here[Any] && rank < r.Agents && len(r.Missing) < told; rank++ {
		if !here[rank] {
			r.Missing = append(r.Missing, rank)
		}
	}
	return r
}

// problems gathers the problems of all members, those that several have once, sorted by
// their texts; more is how many others there are.
func (l *Leader) problems() (all []NodeProblem, more int) {
	hosts := map[string]bool{}
	where, problems := map[string][]string{}, map[string]Problem{} // by text
	for _, a := range l.order {
		hosts[a.Host] = true
		for _, p := range a.Problems {
			problems[p.Text] = p
			if !slices.Contains(where[p.Text], a.Host) {
				where[p.Text] = append(where[p.Text], a.Host)
			}
		}
	}
	texts := slices.Sorted(maps.Keys(problems))
	for _, text := range texts[:min(len(texts), told)] {
		p := NodeProblem{Problem: problems[text]}
		if len(hosts) > 1 {
			on := slices.Sorted(slices.Values(where[text]))
			p.Hosts = on[:min(len(on), told)]
			p.MoreHosts = len(on) - len(p.Hosts)
		}
		all = append(all, p)
	}
	return all, len(texts) - len(all)
}
