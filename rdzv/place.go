package rdzv

import (
	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/internal/signals"
)

// takesMember are the conditions that an attempt takes a member: it has not ended, and the world is
// not agreed, unless the agent joins late; then there is no later attempt.
func takesMember(k keys.Attempt, attempt int, late bool) []clientv3.Cmp {
	noVerdict := kv.Absent(k.Verdict())
	switch {
	case !late:
		return []clientv3.Cmp{noVerdict, kv.Absent(k.World())}
	case attempt == 0: // its world stays
		return []clientv3.Cmp{noVerdict, kv.Present(k.World()), kv.Absent(k.Run.Latest())}
	}
	return []clientv3.Cmp{noVerdict, kv.Present(k.World())}
}

// acceptsLateJoin tells whether an attempt, of a job that has so many agents, runs and takes
// another one late: the number of agents is variable, and another attempt may follow.
func acceptsLateJoin(s *signals.Signals, agents int) bool {
	w := s.World.Load()
	return s.Verdict() == nil && w != nil && w.MaxTasks > 0 && w.MayRestart() && agents < w.MaxTasks
}

// place is that of an agent on its host, which it occupies if it has no launcher, alone or with a
// node rank of its own. The conditions are part of the transaction that publishes the member, so
// that of two agents exactly the later one is refused. The agent keeps it in all attempts.
type place struct {
	member Member
	run    keys.Run
}

// occupant is the value of the key of such an agent.
type occupant struct {
	Host     string `json:"host"`
	PID      int    `json:"pid"`
	NodeRank int    `json:"node_rank"`
}

// free are the conditions that no other agent has the place.
func (p place) free() []clientv3.Cmp {
	m := p.member
	switch {
	case !m.OccupiesHost():
		return nil
	case m.NodeRank == Unknown:
		return []clientv3.Cmp{kv.Absent(string(p.run.Hosts(m.Node))).WithPrefix()}
	}
	return []clientv3.Cmp{
		kv.Absent(p.run.Place(m.Node, Unknown)), kv.Absent(p.run.Place(m.Node, m.NodeRank)),
	}
}

// occupy puts the place of this agent, if it has one.
func (p place) occupy(lease clientv3.LeaseID) []clientv3.Op {
	m := p.member
	if !m.OccupiesHost() {
		return nil
	}
	return []clientv3.Op{clientv3.OpPut(p.run.Place(m.Node, m.NodeRank),
		record.Encode(occupant{m.Host, m.PID, m.NodeRank}), clientv3.WithLease(lease))}
}

// neighbour says which agent keeps this one from its host; nil if none does.
func (p place) neighbour(occupants *clientv3.GetResponse) *OccupiedError {
	m := p.member
	if !m.OccupiesHost() {
		return nil
	}
	for _, kv := range occupants.Kvs {
		o, err := record.Decode[occupant](kv.Value)
		numbered := m.NodeRank != Unknown && o.NodeRank != Unknown && m.NodeRank != o.NodeRank
		if err == nil && !numbered {
			return &OccupiedError{o.Host, o.PID, clientv3.LeaseID(kv.Lease)}
		}
	}
	return nil
}
