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

// admit takes in a member; with the last one the world can begin.
func (l *Leader) admit(ctx context.Context, id, key string, value []byte) error {
	if _, known := l.members[id]; known || l.complete {
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
		return l.writeVerdict(ctx, unready(fmt.Sprintf("cannot take in agent %.64q: %v", id, err)))
	}
	a := &memberState{Member: m}
	l.members[id] = a
	l.joined = append(l.joined, a)
	l.limitJoin(m.JoinWithin)
	if l.lostEarly[id] {
		a.lost = true
		return l.writeVerdict(ctx, l.lostVerdict(a))
	}
	l.pending++
	if len(l.joined) < l.config.Agents || l.verdict != nil {
		return nil
	}
	return l.agree(ctx)
}

// limitJoin takes in how long a member goes on waiting for the others, 0 for ever: the
// member that gives up first ends the job.
func (l *Leader) limitJoin(within time.Duration) {
	by := time.Now().Add(within)
	if within > 0 && (l.joinDeadline.IsZero() || by.Before(l.joinDeadline)) {
		l.joinDeadline, l.joinTimeout = by, time.After(within)
	}
}

func (l *Leader) reportWaiting() {
	if l.config.Waiting != nil && !l.complete && l.verdict == nil {
		l.config.Waiting(l.roster())
	}
}

// joinTimedOut ends a job whose agents have not all come in time.
func (l *Leader) joinTimedOut(ctx context.Context) error {
	if l.complete {
		return nil
	}
	roster := l.roster()
	v := Verdict{Kind: Incomplete, Rank: Any, LocalRank: Any, Roster: &roster}
	v.Problems, v.MoreProblems = l.problems()
	return l.writeVerdict(ctx, v)
}

// agree seats the members, all of whom are here, or says why it cannot.
func (l *Leader) agree(ctx context.Context) error {
	l.complete = true
	if problems, more := l.problems(); len(problems) > 0 {
		v := unready("")
		v.Problems, v.MoreProblems = problems, more
		return l.writeVerdict(ctx, v)
	}
	p, err := assign(l.allMembers())
	if err != nil {
		return l.writeVerdict(ctx, unready(err.Error()))
	}
	for _, a := range l.joined {
		a.seat = p.seats[a.ID]
	}
	p.world.Job, p.world.Attempt = l.config.Job, l.config.Attempt
	return l.publish(ctx, p)
}

func (l *Leader) allMembers() []Member {
	members := make([]Member, len(l.joined))
	for i, a := range l.joined {
		members[i] = a.Member
	}
	return members
}

// publish writes the seats, and with the last of them the world, unless the job
// has ended meanwhile: no worker is started for nothing.
func (l *Leader) publish(ctx context.Context, p plan) error {
	ops := make([]clientv3.Op, 0, len(l.joined)+1)
	for _, a := range l.joined {
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
	r := Roster{Here: len(l.joined), Agents: l.config.Agents}
	here := map[int]bool{}
	var hosts []string
	for _, a := range l.joined {
		here[a.Rank] = true
		hosts = append(hosts, a.Host)
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	r.Hosts = hosts[:min(len(hosts), maxShown)]
	r.MoreHosts = len(hosts) - len(r.Hosts)
	for rank := 0; len(l.joined) > 0 && !here[Any] && rank < r.Agents && len(r.Missing) < maxShown; rank++ {
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
	for _, a := range l.joined {
		hosts[a.Host] = true
		for _, p := range a.Problems {
			problems[p.Text] = p
			if !slices.Contains(where[p.Text], a.Host) {
				where[p.Text] = append(where[p.Text], a.Host)
			}
		}
	}
	texts := slices.Sorted(maps.Keys(problems))
	for _, text := range texts[:min(len(texts), maxShown)] {
		p := NodeProblem{Problem: problems[text]}
		if len(hosts) > 1 {
			on := slices.Sorted(slices.Values(where[text]))
			p.Hosts = on[:min(len(on), maxShown)]
			p.MoreHosts = len(on) - len(p.Hosts)
		}
		all = append(all, p)
	}
	return all, len(texts) - len(all)
}
