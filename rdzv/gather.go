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
