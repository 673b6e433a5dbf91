package rdzv

import (
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// opsPerTxn is the most operations that etcd takes in one transaction.
const opsPerTxn = 128

// admit takes in a member; with the last one the world can begin.
func (l *Leader) admit(ctx context.Context, id string, value []byte) error {
	if _, known := l.members[id]; known || l.complete {
		return nil // said twice, or one too many: it finds that it has no seat
	}
	m, err := decode[Member](value)
	if err == nil {
		err = m.check()
	}
	if err == nil && m.ID != id {
		err = fmt.Errorf("its member has id %.64q", m.ID)
	}
	if err != nil {
		return l.writeVerdict(ctx, unready(fmt.Sprintf("cannot admit agent %.64q: %v", id, err)))
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
		l.config.Waiting(rosterOf(l.allMembers(), l.config.Agents))
	}
}

// joinTimedOut ends a job whose agents have not all come in time.
func (l *Leader) joinTimedOut(ctx context.Context) error {
	if l.complete {
		return nil
	}
	members := l.allMembers()
	roster := rosterOf(members, l.config.Agents)
	v := verdictOf(Incomplete)
	v.Roster = &roster
	v.Problems, v.MoreProblems = problemsOf(members)
	return l.writeVerdict(ctx, v)
}

// agree seats the members, all of whom are here, or says why it cannot.
func (l *Leader) agree(ctx context.Context) error {
	l.complete = true
	members := l.allMembers()
	if problems, more := problemsOf(members); len(problems) > 0 {
		v := verdictOf(Unready)
		v.Problems, v.MoreProblems = problems, more
		return l.writeVerdict(ctx, v)
	}
	p, err := assign(members)
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
