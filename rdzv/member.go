package rdzv

import (
	"fmt"
	"time"

	"rdzv/rdzv/presence"
)

// Unknown stands for a rank or size that the launcher did not give.
const Unknown = -1

// MaxSlots is the most workers of one agent: their outcome is one value.
const MaxSlots = 1024

// Member is what one agent says of itself before there is a world.
type Member struct {
	// ID names the agent; no other agent of the job, ever, has the same. It is as
	// presence.CheckID wants it.
	ID string `json:"id"`
	// Host is the node's name, for people.
	Host string `json:"host"`
	// Node tells nodes apart: agents with the same value share one. Empty: this
	// agent is a node of its own, as agents started by hand are.
	Node string `json:"node,omitempty"`
	// PID is the agent's process id, for people.
	PID int `json:"pid"`

	// Rank, LocalRank and LocalSize are those of the launcher's task, or Unknown. Where
	// nothing is set, LocalSize 0 is refused, so that nobody is rank 0 by mistake.
	Rank      int `json:"rank"`
	LocalRank int `json:"local_rank"`
	LocalSize int `json:"local_size"`
	// NodeRank is the launcher's number of the node, or Unknown.
	NodeRank int `json:"node_rank"`
	// Slots is how many workers the agent runs, 1 to MaxSlots.
	Slots int `json:"slots"`

	// Hosting is true for the agent in whose process the store is.
	Hosting bool `json:"hosting,omitempty"`
	// Addr is the agent's own address on its connection to the store, and Via the
	// store's. Both are empty where there is no connection, as when hosting.
	Addr string `json:"addr,omitempty"`
	Via  string `json:"via,omitempty"`
	// Ways are all that lead from this agent's node to the store, that by Via among
	// them; they may be left out, by the node's other agents for one.
	Ways []Way `json:"ways,omitempty"`
	// MasterPort is the port that the agent holds for torch's store, should it run
	// rank 0; 0 if it holds none.
	MasterPort int `json:"master_port,omitempty"`

	// JoinWithin is how long after its arrival the agent goes on waiting for the
	// others, 0 for ever; Join computes it from Config.JoinBy, for clocks differ.
	JoinWithin time.Duration `json:"join_within,omitempty"`

	// Problems are why the agent cannot run its workers; none if it can.
	Problems []Problem `json:"problems,omitempty"`
}

// Way is a way to the store.
type Way struct {
	Store string `json:"store"` // an address of the store
	Own   string `json:"own"`   // the node's own on the way there
}

// check refuses a member that contradicts itself.
func (m Member) check() error {
	if err := presence.CheckID(m.ID); err != nil {
		return err
	}
	if m.Slots < 1 || m.Slots > MaxSlots {
		return fmt.Errorf("%d workers (1 to %d allowed)", m.Slots, MaxSlots)
	}
	if m.Rank < Unknown || m.LocalRank < Unknown || m.NodeRank < Unknown || m.LocalSize < Unknown || m.LocalSize == 0 {
		return fmt.Errorf("invalid placement: rank %d, local rank %d of %d, node rank %d",
			m.Rank, m.LocalRank, m.LocalSize, m.NodeRank)
	}
	for _, p := range m.Problems {
		if p.Text == "" || p.Kind == "" {
			return fmt.Errorf("invalid problem: kind %.64q, text %.64q", p.Kind, p.Text)
		}
	}
	return nil
}

// address says where an agent is: "node1 (pid 71)".
func address(m Member) string { return fmt.Sprintf("%s (pid %d)", m.Host, m.PID) }
