package rdzv

import (
	"context"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// putMember publishes the member, unless the world is agreed, the job has ended, or this agent must
// not share its host with one that joined before.
func (s *Session) putMember(ctx context.Context) error {
	self := s.keys.member(s.config.Self.ID)
	free, occupy := s.place()
	answer, err := commit(ctx, s.client,
		append(free, absent(s.keys.verdict()), absent(s.keys.world())),
		append(occupy, clientv3.OpPut(self, encode(s.config.Self))),
		[]clientv3.Op{
			clientv3.OpGet(self, clientv3.WithCountOnly()),
			clientv3.OpGet(s.keys.verdict(), clientv3.WithCountOnly()),
			clientv3.OpGet(s.keys.host(s.config.Self.Node), clientv3.WithPrefix()),
		})
	switch {
	case err != nil:
		return fmt.Errorf("cannot join job %q: %w", s.config.Job, err)
	case answer.Succeeded:
		return nil
	case answer.Responses[0].GetResponseRange().Count > 0:
		return nil // an earlier attempt succeeded, but its answer was lost
	case answer.Responses[1].GetResponseRange().Count > 0:
		return ErrClosed
	}
	occupants := (*clientv3.GetResponse)(answer.Responses[2].GetResponseRange())
	if other := s.neighbour(occupants); other != nil {
		return &OccupiedError{Host: other.Host, PID: other.PID}
	}
	return ErrFull
}

// occupant is an agent without a launcher on its host.
type occupant struct {
	Host     string `json:"host"`
	PID      int    `json:"pid"`
	NodeRank int    `json:"node_rank"`
}

// place returns how an agent without a launcher occupies its host, alone or with a node rank of its
// own, and the conditions for that. They are part of the transaction that publishes the member, so
// that of two agents exactly the later one is refused.
func (s *Session) place() (free []clientv3.Cmp, occupy []clientv3.Op) {
	m := s.config.Self
	if m.Rank != Unknown || m.Node == "" {
		return nil, nil
	}
	host := s.keys.host(m.Node)
	alone, own := host+strconv.Itoa(Unknown), host+strconv.Itoa(m.NodeRank)
	free = []clientv3.Cmp{absent(alone), absent(own)}
	if m.NodeRank == Unknown {
		free = []clientv3.Cmp{absent(host).WithPrefix()}
	}
	return free, []clientv3.Op{clientv3.OpPut(own, encode(occupant{m.Host, m.PID, m.NodeRank}))}
}

// neighbour returns the agent that keeps this one from its host; nil if none does.
func (s *Session) neighbour(occupants *clientv3.GetResponse) *occupant {
	m := s.config.Self
	if m.Rank != Unknown || m.Node == "" {
		return nil
	}
	for _, kv := range occupants.Kvs {
		o, err := decode[occupant](kv.Value)
		shared := m.NodeRank != Unknown && o.NodeRank != Unknown && m.NodeRank != o.NodeRank
		if err == nil && !shared {
			return &o
		}
	}
	return nil
}
