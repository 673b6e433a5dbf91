package record

import (
	"fmt"
	"slices"
	"time"

	"rdzv/rdzv/internal/protocol"
)

// Unknown is a rank or size that the launcher does not provide.
const Unknown = -1

// MaxSlots is the maximum number of workers of an agent: their outcome is one value.
const MaxSlots = 1024

// Member describes an agent. The agent puts it as member/ID to join an attempt. The leader assigns
// the seats by the members of all agents.
type Member struct {
	// ID identifies the agent among all that ever join the job; see protocol.CheckID.
	ID string `json:"id"`
	// Host is the host name, for people.
	Host string `json:"host"`
	// Node identifies the node: agents with the same value share one. If it is "", the agent is a
	// node of its own.
	Node string `json:"node,omitempty"`
	// PID is the agent's process ID, for people.
	PID int `json:"pid"`

	// Tasks are those whose workers the agent runs, at least one. The workers have their order.
	Tasks []Task `json:"tasks"`
	// LocalSize is how many tasks the launcher has started on the node, or Unknown. 0 is rejected, so
	// that a Member without a placement is not rank 0 by mistake.
	LocalSize int `json:"local_size"`
	// NodeRank is the launcher's node rank, without a launcher the one that the user gave to this
	// agent; or Unknown.
	NodeRank int `json:"node_rank"`

	// Hosting is true if the store is in the agent's process.
	Hosting bool `json:"hosting,omitempty"`
	// StoreGiven is true if the user named the host of the store, whose node then is the first one
	// without a launcher.
	StoreGiven bool `json:"store_given,omitempty"`
	// Addr is the agent's own address on its connection to the store, and StoreAddr the store's.
	// Both are "" without a connection, as on the host of the store.
	Addr      string `json:"addr,omitempty"`
	StoreAddr string `json:"store_addr,omitempty"`
	// Paths are all network paths from this agent's node to the store, including the one
	// by StoreAddr. It is enough if one agent of a node lists them.
	Paths []Path `json:"paths,omitempty"`
	// MasterPort is the port that the agent holds in case that it runs rank 0; 0 if it holds none.
	MasterPort int `json:"master_port,omitempty"`
	// HeadStart is that of the world if this agent runs rank 0.
	HeadStart time.Duration `json:"head_start,omitempty"`
	// Exports are given to all agents if this one runs rank 0; nil if there are none.
	Exports *Exports `json:"exports,omitempty"`

	// JoinWithin is how long after joining the agent waits for the others; 0 is no limit.
	// Join sets it from Config.JoinBy, because clocks differ.
	JoinWithin time.Duration `json:"join_within,omitempty"`

	// Problems prevent the agent from running its workers, Rank0Problems only if rank 0 is one of
	// them.
	Problems      []Problem `json:"problems,omitempty"`
	Rank0Problems []Problem `json:"rank0_problems,omitempty"`
	// Facts are compared with those of the other nodes. Strict makes differences problems: it is
	// enough if one agent asks for that.
	Facts  Facts `json:"facts,omitzero"`
	Strict bool  `json:"strict,omitempty"`
}

// ProblemKind is the kind of a problem.
type ProblemKind string

const (
	// The program, or its interpreter or script, does not exist.
	ProgramMissing ProblemKind = "program_missing"
	// It cannot be executed, or its script cannot be read.
	ProgramNotExecutable ProblemKind = "program_not_executable"
	// rdzv itself cannot do there what its user asked for.
	AgentProblem      ProblemKind = "agent"
	DifferenceProblem ProblemKind = "difference" // nodes differ, see Member.Strict
	OtherProblem      ProblemKind = "other"      // a limit, a device, a port, ...
)

// Problem is a reason why an agent cannot run its workers. It is part of the member, so that the
// problems of all nodes are reported together and all agents have the same exit code.
type Problem struct {
	// `program_missing`: the program, or its interpreter or script. `program_not_executable`: also
	// if the script cannot be read. `agent`: rdzv itself cannot run there as asked for.
	// `difference`: nodes differ (`--strict`). Or `other`
	Kind ProblemKind `json:"kind"`
	Text string      `json:"text"`           // what it is
	Hint string      `json:"hint,omitempty"` // what to try
}

// Path is a network path to the store.
type Path struct {
	Store string `json:"store"` // an address of the store
	Own   string `json:"own"`   // the node's own address on this path
}

// Check rejects an invalid member.
func (m Member) Check() error {
	if err := protocol.CheckID(m.ID); err != nil {
		return err
	}
	if err := m.checkTasks(); err != nil {
		return err
	}
	return CheckProblems(slices.Concat(m.Problems, m.Rank0Problems))
}

// checkTasks rejects impossible numbers of workers, and places of tasks.
func (m Member) checkTasks() error {
	impossible := func(n int) bool { return n < 1 || n > MaxSlots }
	workers := 0
	for _, t := range m.Tasks {
		if workers += t.Slots; impossible(t.Slots) {
			workers = t.Slots
			break
		}
	}
	if impossible(workers) {
		return fmt.Errorf("%d workers (1 to %d allowed)", workers, MaxSlots)
	}
	for _, t := range m.Tasks {
		least := min(t.Rank, t.LocalRank, m.LocalSize, m.NodeRank)
		if least < Unknown || m.LocalSize == 0 || t.Rank == Unknown && len(m.Tasks) > 1 {
			return fmt.Errorf("invalid placement: rank %d, local rank %d of %d, node rank %d",
				t.Rank, t.LocalRank, m.LocalSize, m.NodeRank)
		}
	}
	return nil
}

func CheckProblems(problems []Problem) error {
	for _, p := range problems {
		if p.Text == "" || p.Kind == "" {
			return fmt.Errorf("invalid problem: kind %.64q, text %.64q", p.Kind, p.Text)
		}
	}
	return nil
}

// Identity returns only the fields by which others name the agent when it is lost, or find another
// one in its place. It is the value of agent/ID.
func (m Member) Identity() Member {
	return Member{ID: m.ID, Host: m.Host, Node: m.Node, PID: m.PID, Tasks: m.Tasks,
		NodeRank: m.NodeRank}
}

// Address returns where an agent runs: "node1 (pid 71)".
func Address(m Member) string { return fmt.Sprintf("%s (pid %d)", m.Host, m.PID) }

// NodeProblem is a problem and the nodes that have it, as an error.
type NodeProblem struct {
	Problem
	// the nodes that have it, the first 8; left out if the job is on one node
	Hosts     []string `json:"hosts,omitempty"`
	MoreHosts int      `json:"more_hosts,omitempty"` // how many other nodes have it
}

func (p NodeProblem) Error() string {
	if len(p.Hosts) == 0 {
		return p.Text
	}
	return p.Text + " (on " + List(p.Hosts, p.MoreHosts) + ")"
}

// ClippedProblems are problems with texts of the size that is allowed.
func ClippedProblems(problems []Problem) []Problem {
	problems = slices.Clone(problems)
	for i := range problems {
		p := &problems[i]
		p.Text, p.Hint = Clip(p.Text), Clip(p.Hint)
	}
	return problems
}

// OccupiesHost tells whether the agent has no launcher and is on a known host.
func (m Member) OccupiesHost() bool { return !m.Launched() && m.Node != "" }

// Loss is the value of lost/ID: why the agent is gone for good, and what is known of its processes.
// It is put together with the deletion of agent/ID or, if that was the end of a lease, when the
// leader decides. If neither Ended nor After is set, nothing is known: its connection was reset, or
// its lease has ended, which a cluster may have revoked early.
type Loss struct {
	// Ended says that it is proved that none of its processes runs.
	Ended bool `json:"ended,omitempty"`
	// Left says that it has left by itself.
	Left bool `json:"left,omitempty"`
	// After is for how long it was not heard, if that is why it is lost; otherwise 0.
	After time.Duration `json:"after,omitempty"`
	// Ago is how long before this was written agent/ID was deleted.
	Ago time.Duration `json:"ago,omitempty"`
	// Agent identifies it to a leader that has not read its member; nil if that is not known.
	Agent *Member `json:"agent,omitempty"`
}
