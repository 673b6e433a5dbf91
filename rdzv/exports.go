package rdzv

import (
	"context"
	"fmt"
	"maps"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Exports are what the agent of rank 0 gives to all agents together with the world.
type Exports struct {
	Sealed []byte `json:"sealed"` // that agents can read, and nobody who reads the store's files
	// Variables are the names of those that are exported. The facts about them are not compared.
	Variables []string `json:"variables"`
	// Confirm lets all agents wait, after they have read the exports, until each of them has called
	// Ready: no worker may start unless all can. The problems and facts of the members do not count
	// then.
	Confirm bool `json:"confirm,omitempty"`
}

// without is members whose facts do not have the exported variables.
func (e *Exports) without(members []Member) []Member {
	if e == nil {
		return members
	}
	members = slices.Clone(members)
	for i := range members {
		f := &members[i].Facts
		f.Variables = maps.Clone(f.Variables)
		for _, name := range e.Variables {
			delete(f.Variables, name)
		}
	}
	return members
}

// readiness is the value of ready/ID.
type readiness struct {
	Problems []Problem `json:"problems,omitempty"` // why the agent cannot start its workers
	Facts    Facts     `json:"facts,omitzero"`
}

// started is the value of signal/start: all agents have confirmed.
type started struct{}

// Ready reports that this agent can start its workers with what rank 0's agent exports, or all its
// problems, and what facts are different with it, and waits until all agents can. An agent that
// cannot calls it even if the others do not wait. If the job ends before that, the error is the
// cause of the end of Context.
func (s *Session) Ready(ctx context.Context, problems []Problem, facts Facts) error {
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	key, value := s.keys.ready(s.config.Self.ID), encode(readiness{clipped(problems), facts.clipped()})
	if err := s.put(ctx, key, value, s.registration.lease); err != nil {
		return fmt.Errorf("cannot write that this agent is ready: %w", err)
	}
	select {
	case <-s.haveStart:
	case <-s.ctx.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return context.Cause(s.ctx)
}

// readReady handles the confirmation of an agent. The last one starts the job, or ends it if some
// agent has a problem.
func (l *Leader) readReady(ctx context.Context, id string, value []byte) error {
	m := l.members[id]
	if m == nil || m.ready || m.seat.Spare || !l.complete {
		return nil
	}
	m.ready = true
	l.unready = max(l.unready-1, 0)
	r, err := decode[readiness](value)
	if err == nil {
		err = checkProblems(r.Problems)
	}
	if err != nil {
		text := fmt.Sprintf("cannot read whether %s is ready: %v", agentName(m.lostVerdict()), err)
		return l.writeVerdict(ctx, unready(text))
	}
	m.Problems, m.Facts = r.Problems, r.Facts
	if l.unready > 0 || l.verdict != nil {
		return nil
	}
	if v := l.check(l.allMembers(), nil); l.ends(v) {
		return l.writeVerdict(ctx, v)
	}
	return l.writeStart(ctx)
}

// writeStart lets the workers start, unless there is a verdict.
func (l *Leader) writeStart(ctx context.Context) error {
	noVerdict := []clientv3.Cmp{absent(l.keys.verdict())}
	if err := l.commit(ctx, noVerdict, l.put(l.keys.start(), encode(started{}))); err != nil {
		return fmt.Errorf("cannot start job %q: %w", l.config.Job, err)
	}
	return nil
}
