package rdzv

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// World is the agreed table of all workers, without the seats of the other agents.
type World struct {
	Job     string `json:"job"`
	Attempt int    `json:"attempt"`
	Size    int    `json:"size"`   // number of workers
	Agents  int    `json:"agents"` // number of agents
	Nodes   int    `json:"nodes"`  // number of nodes

	// MasterAddr and MasterPort are the address of the torch store that rank 0 serves.
	MasterAddr string `json:"master_addr"`
	MasterPort int    `json:"master_port"`

	// StoreHost is the node of the agent that hosts the store, and StoreRank its first
	// rank. They name the agent if the store is lost. "" and Unknown if no agent hosts it.
	StoreHost string `json:"store_host,omitempty"`
	StoreRank int    `json:"store_rank"`

	Seat Seat `json:"-"` // this agent's; it has a key of its own
}

// Seat is an agent's place in the world. Its workers have the ranks Rank, Rank+1, ...
// and the local ranks LocalRank, LocalRank+1, ...
type Seat struct {
	Rank      int `json:"rank"`       // of its first worker
	LocalRank int `json:"local_rank"` // of its first worker
	LocalSize int `json:"local_size"` // workers on its node
	Node      int `json:"node"`       // rank of its node
	Slots     int `json:"slots"`      // workers of this agent
}

// World waits until all agents have joined and returns the world. If the job ends before
// that, the error is the cause of the end of Context.
func (s *Session) World(ctx context.Context) (World, error) {
	select {
	case <-s.haveWorld:
		return s.readSeat(ctx)
	case <-s.ctx.Done():
		return World{}, context.Cause(s.ctx)
	case <-ctx.Done():
		return World{}, context.Cause(ctx)
	}
}

// readSeat returns the world with this agent's seat, which was written before it.
func (s *Session) readSeat(ctx context.Context) (World, error) {
	if s.ctx.Err() != nil {
		return World{}, context.Cause(s.ctx)
	}
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	key := s.keys.seat(s.config.Self.ID)
	answer, err := again(ctx, func() (*clientv3.GetResponse, error) { return s.client.Get(ctx, key) })
	if err != nil {
		return World{}, fmt.Errorf("cannot read this agent's seat: %w", err)
	}
	if len(answer.Kvs) == 0 {
		s.cancel(ErrFull) // it joined at the same time as the last one
		return World{}, ErrFull
	}
	w := *s.world
	if w.Seat, err = decode[Seat](answer.Kvs[0].Value); err != nil {
		return World{}, fmt.Errorf("cannot read %q: %w", key, err)
	}
	return w, nil
}
