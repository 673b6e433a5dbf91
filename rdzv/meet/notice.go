package meet

import (
	"fmt"
	"net/netip"
	"time"

	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/internal/record"
)

// A Notice is something that Meet reports while it continues. Its types are Searching, NoPeerYet,
// DifferentToken, DifferentVersion, DifferentCommand, DifferentStore, RanksMissing and NoMulticast,
// which are events of package agent, and Disappeared and KeeperLost.
type Notice interface{ notice() }

// NoPeerYet says that no other agent has connected to the store of this agent yet. Only an agent
// without a launcher reports it, once.
type NoPeerYet struct {
	Waited record.Seconds `json:"waited_seconds"` // since it began to wait
	// whether it searches by multicast and has not received a beacon either
	NoBeacon bool `json:"no_beacon,omitempty"`
	// what to give to `--store` on every node if the others cannot find this one
	Store netip.Addr `json:"store,omitzero"`
	// the `--store` of this agent, if it means a different host on each node, as `localhost` does
	Loopback string `json:"loopback,omitempty"`
	// JoinLine is RDZV_JOIN=..., for the other nodes, see Meeting.JoinLine. Secret says that it has
	// the job key, which must not be written to log files.
	JoinLine string `json:"-"`
	Secret   bool   `json:"-"`
	Hint     string `json:"hint,omitempty"` // what to check
	// whether agents of other jobs have been reported, which explains why none has connected
	Explained bool `json:"explained,omitempty"`
}

// String says that nobody has come, "" if that has been explained.
func (n NoPeerYet) String() string {
	switch {
	case n.Explained:
		return ""
	case n.NoBeacon:
		return fmt.Sprintf("no other agent has connected after %v, and no multicast beacon was received",
			n.Waited.Rounded())
	}
	return fmt.Sprintf("no other agent has connected after %v", n.Waited.Rounded())
}

// Hints are what the user can do about it, besides starting the command of JoinLine, if there is
// one.
func (n NoPeerYet) Hints() (hints []string) {
	if n.Hint != "" {
		hints = append(hints, n.Hint)
	}
	switch {
	case n.Loopback != "":
		return append(hints, fmt.Sprintf("%s is each node's own: for agents on other nodes start every "+
			"node with --store %s", n.Loopback, n.Store))
	case n.Store.IsValid() && n.JoinLine == "":
		return append(hints, "if the other nodes cannot find this one, start every node with --store "+
			n.Store.String())
	}
	return hints
}

// DifferentToken says that an agent of the same job has another token, so that they cannot connect.
// It is reported once for each such host, at most 16 times.
type DifferentToken struct {
	// the name that the other agent gives itself, not verified
	Host string     `json:"host,omitempty"`
	Addr netip.Addr `json:"addr"` // its address
	// whether it hosts the store and refuses this agent, which gives up after 30 s
	Hosting bool `json:"hosting"`
	// it is not an agent but a store for many jobs (`rdzv store`)
	Shared bool `json:"shared,omitempty"`
	// names this agent's token and what to copy
	Hint string `json:"hint"`
}

func (n DifferentToken) String() string { return n.Agent() + " " + n.differs() }

// Agent is the name and the address of the agent: "node2 (10.77.0.12)".
func (n DifferentToken) Agent() string { return hostAndAddr(n.Host, n.Addr) }

func (n DifferentToken) differs() string { return "has a different token" }

// DifferentVersion says that an agent of the same job has another version of the protocol, so that
// the two cannot work together. It is reported as often as [DifferentToken].
type DifferentVersion struct {
	// the name that the other agent gives itself, not verified
	Host     string     `json:"host,omitempty"`
	Addr     netip.Addr `json:"addr"`         // its address
	Protocol int        `json:"protocol"`     // its version
	Own      int        `json:"own_protocol"` // that of this agent
	// whether it hosts the store and refuses this agent, which gives up after 30 s
	Hosting bool `json:"hosting"`
	// it is not an agent but a store for many jobs (`rdzv store`)
	Shared bool `json:"shared,omitempty"`
}

func (n DifferentVersion) String() string { return n.Agent() + " " + n.differs() }

// Agent is the name and the address of the agent.
func (n DifferentVersion) Agent() string { return hostAndAddr(n.Host, n.Addr) }

// Hint says what to do.
func (n DifferentVersion) Hint() string { return protocol.Advice }

func (n DifferentVersion) differs() string { return protocol.Difference(n.Protocol) }

// DifferentCommand says that an agent with the same token belongs to another job. It is reported
// as often as [DifferentToken].
type DifferentCommand struct {
	// the name that the other agent gives itself, not verified
	Host string     `json:"host,omitempty"`
	Addr netip.Addr `json:"addr"` // its address
}

// String names the agent and what the user can do.
func (n DifferentCommand) String() string {
	return n.Agent() + " " + n.differs() + "; if both belong to one job, give them the same --job NAME"
}

// Agent is the name and the address of the agent.
func (n DifferentCommand) Agent() string { return hostAndAddr(n.Host, n.Addr) }

func (n DifferentCommand) differs() string { return "runs a different command or --nodes" }

// DifferentStore says that another agent of the same job also hosts a store, because `--store`
// names different hosts for the two, so that they cannot join the same job. It is reported as often
// as [DifferentToken], on networks with multicast.
type DifferentStore struct {
	Host string     `json:"host,omitempty"` // the name that the other agent gives itself
	Addr netip.Addr `json:"addr"`           // its address
}

// String names the agent and what the user can do.
func (n DifferentStore) String() string {
	return n.Agent() + " " + n.differs() + "; for one job give all nodes the same --store"
}

// Agent is the name and the address of the agent.
func (n DifferentStore) Agent() string { return hostAndAddr(n.Host, n.Addr) }

func (n DifferentStore) differs() string { return "hosts another store for the same command" }

func (DifferentStore) notice() {}

// Rejected is the notice about an agent that does not belong to the job, a DifferentToken,
// DifferentVersion, DifferentCommand or DifferentStore.
type Rejected interface {
	Notice
	String() string
	Agent() string   // its name
	differs() string // how, without its name
}

func hostAndAddr(host string, addr netip.Addr) string {
	if host != "" && host != addr.String() {
		return fmt.Sprintf("%s (%s)", host, addr)
	}
	return addr.String()
}

// RanksMissing says that the launcher has not started all ranks yet, and does not report which.
// Agents under mpiexec.hydra report it, after some seconds.
type RanksMissing struct {
	Ranks int `json:"ranks"` // number of ranks of the job
}

func (n RanksMissing) String() string {
	return fmt.Sprintf("waiting for all %d ranks to start (Hydra does not report which are missing)",
		n.Ranks)
}

// NoMulticast says that this agent cannot search for the others by multicast; they may still find
// it by its address. Only an agent without a launcher reports it.
type NoMulticast struct {
	Err  error  `json:"-"`
	Text string `json:"text"` // why
}

func (n NoMulticast) String() string {
	return "cannot search for the other nodes by multicast: " + n.Text
}

// KeeperLost is reported by rank 0 under Hydra if the process has been killed that had the job key
// for later agents of a task. The agents meet with the user's token instead.
type KeeperLost struct {
	Err error
}

// Disappeared reports an agent that was connected to this one and has ended, or is no longer
// reachable, before it joined. Only an agent without a launcher reports it.
type Disappeared struct {
	Host string     // as in DifferentToken
	Addr netip.Addr // as in DifferentToken
	Ago  time.Duration
	seen time.Time
}

func (n Disappeared) String() string {
	return fmt.Sprintf("%s was searching and disappeared %v ago",
		hostAndAddr(n.Host, n.Addr), n.Ago.Round(time.Second))
}

func (Disappeared) notice()      {}
func (KeeperLost) notice()       {}
func (NoPeerYet) notice()        {}
func (DifferentToken) notice()   {}
func (DifferentVersion) notice() {}
func (DifferentCommand) notice() {}
func (RanksMissing) notice()     {}
func (NoMulticast) notice()      {}

// The names of the events.
func (Searching) Type() string        { return "searching" }
func (NoPeerYet) Type() string        { return "alone" }
func (DifferentToken) Type() string   { return "different_token" }
func (DifferentVersion) Type() string { return "different_version" }
func (DifferentCommand) Type() string { return "different_command" }
func (DifferentStore) Type() string   { return "different_store" }
func (RanksMissing) Type() string     { return "ranks_missing" }
func (NoMulticast) Type() string      { return "no_multicast" }
