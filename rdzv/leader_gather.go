package rdzv

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// opsPerTxn is the maximum number of operations in a transaction of etcd.
const opsPerTxn = 128

// admit adds a member. When it is the last one the world is agreed. After the first attempt only
// its agents are admitted, and others in place of those that are lost; in an elastic job others at
// any time.
func (l *Leader) admit(ctx context.Context, id string, value []byte) error {
	delete(l.preparing, id)
	state := l.members[id]
	duplicate := state != nil && !state.away
	tooLate := l.complete || l.gone[id] && l.later()
	if duplicate || tooLate && !l.elastic() {
		return nil // or one agent too many, which finds no seat
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
	tooMany := state == nil && len(l.joined) >= l.config.Agents
	switch {
	case l.elastic() && (l.complete || l.gone[id] || tooMany):
		return l.receive(ctx, m)
	case state != nil:
		state.Member, state.away = m, false
	case l.later() && !l.elastic():
		if state = l.fill(m); state == nil {
			l.unseated = append(l.unseated, m)
			return nil
		}
	default:
		state = &memberState{Member: m, lost: l.gone[id]}
		l.addMember(state)
	}
	l.here++
	l.countLastCall()
	l.limitJoin(m.JoinWithin)
	if state.lost {
		return l.writeVerdict(ctx, l.lossOf(state))
	}
	return l.start(ctx)
}

// start agrees on the world if all have joined, when the delay has passed.
func (l *Leader) start(ctx context.Context) error {
	if !l.allHere() || l.verdict != nil {
		return nil
	}
	if wait := time.Until(l.mayStartAt()); wait > 0 {
		l.startTime = time.After(wait)
		return nil
	}
	return l.agree(ctx)
}

// allHere tells whether all agents of the job have joined this attempt.
func (l *Leader) allHere() bool {
	switch {
	case l.elastic():
		return l.enoughHere()
	case l.later():
		return l.here == len(l.joined)
	}
	return l.here == l.config.Agents
}

func (l *Leader) addMember(m *memberState) {
	l.members[m.ID] = m
	l.joined = append(l.joined, m)
	l.launched = l.launched || m.Rank != Unknown
	if !m.lost {
		l.pending++
	}
}

// limitJoin applies the limit of a member, 0 for none. The earliest deadline ends the job.
func (l *Leader) limitJoin(limit time.Duration) {
	deadline := time.Now().Add(limit)
	if limit > 0 && (l.joinDeadline.IsZero() || deadline.Before(l.joinDeadline)) {
		l.joinDeadline, l.joinTimeout = deadline, time.After(limit)
	}
}

// scheduleWaiting determines when Waiting is called next.
func (l *Leader) scheduleWaiting() {
	if l.config.Waiting != nil {
		l.waited = l.config.NextWaiting(l.waited)
		l.waiting = time.After(time.Until(l.begin.Add(l.waited)))
	}
}

// reportWaiting calls Waiting if agents are missing.
func (l *Leader) reportWaiting() {
	if !l.complete && l.verdict == nil {
		l.config.Waiting(l.roster(), l.waited)
		l.scheduleWaiting()
	}
}

func (l *Leader) roster() Roster {
	r := rosterOf(l.allMembers(), l.config.Agents, l.config.Nodes,
		slices.Collect(maps.Values(l.preparing))...)
	r.Min, r.Unattended = l.config.MinAgents, l.config.Unattended
	if l.config.Refused != nil {
		r.Refused, r.MoreRefused = cut(l.config.Refused())
	}
	r.OtherVersion, r.MoreOtherVersion = cut(l.otherVersions())
	return r
}

// joinTimedOut ends a job whose agents have not all joined in time.
func (l *Leader) joinTimedOut(ctx context.Context) error {
	if l.complete || l.allHere() {
		return nil
	}
	if l.elastic() && !l.later() && l.here >= l.config.MinAgents {
		return l.endLastCall(ctx)
	}
	if v := l.vacantTooLong(); v != nil {
		return l.writeVerdict(ctx, *v)
	}
	members := l.allMembers()
	if tasks := inOrder(members); len(tasks) > 0 && tasks[0].Rank <= 0 && tasks[0].NodeRank <= 0 {
		withRank0Problems(members, tasks[0].ID) // as far as it is known by now which agent has rank 0
	}
	roster := l.roster()
	l.gathered(members)
	v := verdictOf(Incomplete)
	v.Roster = &roster
	v.Problems, v.MoreProblems = problemsOf(members)
	return l.writeVerdict(ctx, v)
}

// withRank0Problems adds to a member's problems those that it has if rank 0 is one of its workers.
func withRank0Problems(members []Member, id string) {
	for i, m := range members {
		if m.ID == id {
			members[i].Problems = slices.Concat(m.Problems, m.Rank0Problems)
		}
	}
}

// agree assigns the seats of all members and publishes the world, or ends the job if it
// cannot start. A later attempt has the seats of the first one.
func (l *Leader) agree(ctx context.Context) error {
	l.complete = true
	members := l.allMembers()
	world, seats, problem := l.assign(members)
	for _, m := range members {
		if problem == nil && seats[m.ID].Rank == 0 {
			withRank0Problems(members, m.ID)
			l.exports = m.Exports
		}
	}
	if l.exports != nil && l.exports.Confirm {
		l.unready = world.Agents // they report their problems and facts again
	} else if v := l.check(members, problem); problem != nil || l.ends(v) {
		return l.writeVerdict(ctx, v)
	}
	l.introducePeers(members)
	for _, m := range l.joined {
		m.seat = seats[m.ID]
		l.excuseSpare(m)
	}
	l.agreed = time.Now().UTC()
	if l.began.IsZero() {
		l.began = l.agreed
	}
	world.Job, world.Attempt, world.Began = l.config.Job, l.config.Attempt, l.began
	world.MaxRestarts, world.Replaced = l.config.Restarts.Max, l.replaced()
	if world.MaxRestarts > 0 {
		world.PeerTimeout, world.LostGrace = l.config.PeerTimeout, l.config.LostGrace
	}
	world.Replaceable = l.config.Replaceable
	if l.elastic() && l.config.Check == nil {
		world.MaxAgents = l.config.Agents
	}
	published, err := l.publish(ctx, world)
	if err != nil || !published || !l.later() {
		return err
	}
	return l.forgetPrevious(ctx)
}

func (l *Leader) assign(members []Member) (World, map[string]Seat, *Problem) {
	if l.elastic() {
		world, seats := l.assignInTurn(members)
		return world, seats, nil
	}
	if !l.later() {
		return assign(members, l.config.Spares)
	}
	seats := map[string]Seat{}
	for _, m := range l.joined {
		seats[m.ID] = m.seat
	}
	return worldOf(members, seats), seats, nil
}

// check returns the verdict of a job that cannot start, which has no problems if it can. problem is
// why there is no world.
func (l *Leader) check(members []Member, problem *Problem) Verdict {
	l.gathered(members)
	v := verdictOf(Unready)
	v.Problems, v.MoreProblems = problemsOf(members)
	if problem != nil && len(v.Problems) == 0 {
		v.Problems = []NodeProblem{{Problem: *problem}}
	}
	different, more := l.compare(members)
	v.Problems, v.MoreProblems = append(v.Problems, different...), v.MoreProblems+more
	return v
}

// compare compares the facts of all members. It returns the differences that are problems, or the
// first of them and the number of the others.
func (l *Leader) compare(members []Member) (problems []NodeProblem, more int) {
	all := Compare(l.exports.without(members))
	strict := slices.ContainsFunc(members, func(m Member) bool { return m.Strict })
	if l.config.Compared != nil && !l.later() {
		l.config.Compared(all, strict)
	}
	for _, c := range all {
		if strict && c.Differs() {
			text := clip(fmt.Sprintf("cannot start: %v (Config.Strict)", c))
			problems = append(problems, NodeProblem{Problem: Problem{Kind: DifferenceProblem, Text: text}})
		}
	}
	return cut(problems)
}

// ends tells whether the problems of a verdict end the job before workers are started. A job that
// only checks goes on with them.
func (l *Leader) ends(v Verdict) bool {
	l.found = v
	return len(v.Problems) > 0 && l.config.Check == nil
}

func (l *Leader) gathered(members []Member) []NodeProblem {
	if l.config.Check == nil {
		return nil
	}
	return l.config.Check.Gathered(inOrder(l.exports.without(members)))
}

// introducePeers tells the agents that answer those of other nodes, one of each node, to which
// nodes they are to measure the connections.
func (l *Leader) introducePeers(members []Member) {
	if l.config.Check == nil {
		return
	}
	nodes := nodesOf(inOrder(members))
	agents := make([]Member, len(nodes))
	for i, node := range nodes {
		at := slices.IndexFunc(node, func(m Member) bool { return m.Answers != "" })
		agents[i] = node[max(at, 0)]
	}
	for i, m := range agents {
		state := l.members[m.ID]
		for _, to := range l.config.Check.Peers(i, len(nodes)) {
			if peer := agents[to]; m.Answers != "" && peer.Answers != "" {
				state.peers = append(state.peers, Endpoint{ID: peer.ID, Addr: endpoint(peer, m)})
			}
		}
	}
}

// endpoint is the address and port at which an agent answers another one.
func endpoint(peer, from Member) string {
	_, port, err := net.SplitHostPort(peer.Answers)
	if err != nil || !peer.Hosting || from.Via == "" {
		return peer.Answers
	}
	return net.JoinHostPort(from.Via, port)
}

func (l *Leader) allMembers() []Member {
	members := make([]Member, 0, len(l.joined))
	for _, m := range l.joined {
		if !m.away {
			members = append(members, m.Member)
		}
	}
	return members
}

// publish writes the seats and the exports and then the world, unless there is a verdict. It tells
// whether there is a world.
func (l *Leader) publish(ctx context.Context, world World) (bool, error) {
	ops := make([]clientv3.Op, 0, len(l.joined)+2)
	for _, m := range l.joined {
		seat := seatValue{Seat: m.seat, Peers: m.peers}
		if l.elected() {
			seat.Agent = new(m.identity())
		}
		ops = append(ops, l.put(l.keys.seat(m.ID), encode(seat)))
	}
	if l.exports != nil {
		ops = append(ops, l.put(l.keys.exports(), encode(l.exports)))
	}
	ops = append(ops, l.put(l.keys.world(), encode(world)))
	for some := range slices.Chunk(ops, opsPerTxn) {
		noVerdict := []clientv3.Cmp{absent(l.keys.verdict())}
		done, err := l.commitIf(ctx, noVerdict, some...)
		if err == nil && !done { // the world was written before the verdict if an answer was lost
			done, err = l.commitIf(ctx, []clientv3.Cmp{present(l.keys.world())})
		}
		if err != nil {
			return false, fmt.Errorf("cannot publish the world of job %q: %w", l.config.Job, err)
		}
		if !done {
			return false, nil
		}
	}
	return true, nil
}
