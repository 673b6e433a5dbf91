package meet

import (
	"fmt"
	"net/netip"
	"time"

	"rdzv/rdzv/internal/protocol"
)

// A Notice is something that Meet reports while it continues. Its types are Searching, NoPeerYet,
// DifferentToken, DifferentVersion, DifferentCommand, DifferentStore, RanksMissing, NoMulticast,
// Disappeared and KeeperLost.
type Notice interface{ notice() }

// NoPeerYet is reported by an agent without a launcher if no other agent has connected to it yet.
type NoPeerYet struct {
	After    time.Duration
	NoBeacon bool       // this agent searches by multicast, and has not received a beacon either
	Store    netip.Addr // value for --store on all nodes; not valid if it would not help
	Loopback string     // value of --store that is an address of each node's own; "" if it is not
	JoinLine string     // what to put before the command on another node, see Meeting.JoinLine
	Hint     string     // what the user can check; may be empty
	// Explained is set if agents were reported that do not belong to the job: that is why.
	Explained bool
	Secret    bool // JoinLine contains the job key, which must not be written to log files
}

// DifferentToken reports an agent of the same job (the same command or the same --job) that has a
// different secret.
type DifferentToken struct {
	// the name that the other agent gives itself, not verified
	Host string     `json:"host,omitempty"`
	Addr netip.Addr `json:"addr"` // its address
	// whether it hosts the store and refuses this agent, which gives up after 30 s
	Hosting bool `json:"hosting"`
	// it is not an agent but a store for many jobs (`rdzv store`)
	Shared bool `json:"shared,omitempty"`
}

func (n DifferentToken) String() string {
	return hostAndAddr(n.Host, n.Addr) + " has a different token"
}

// Agent is the name and the address of the agent: "node2 (10.77.0.12)".
func (n DifferentToken) Agent() string { return hostAndAddr(n.Host, n.Addr) }

func (n DifferentToken) describe() string {
	return hostAndAddr(n.Host, n.Addr) + ", which has a different token"
}

// DifferentVersion reports an agent of the same job whose rdzv has another version of the protocol,
// so that the two cannot work together.
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

func (n DifferentVersion) String() string {
	return n.Agent() + " " + protocol.Difference(n.Protocol)
}

// Agent is the name and the address of the agent.
func (n DifferentVersion) Agent() string { return hostAndAddr(n.Host, n.Addr) }

// Hint says what to do.
func (n DifferentVersion) Hint() string { return protocol.Advice }

func (n DifferentVersion) describe() string {
	return n.Agent() + ", which " + protocol.Difference(n.Protocol)
}

// DifferentCommand reports an agent of another job: one with a different command or a different
// --job.
type DifferentCommand struct {
	// the name that the other agent gives itself, not verified
	Host string     `json:"host,omitempty"`
	Addr netip.Addr `json:"addr"` // its address
}

// String names the agent and what the user can do.
func (n DifferentCommand) String() string {
	return hostAndAddr(n.Host, n.Addr) + " runs a different command or --nodes; " +
		"if both belong to one job, give them the same --job NAME"
}

// Agent is the name and the address of the agent.
func (n DifferentCommand) Agent() string { return hostAndAddr(n.Host, n.Addr) }

func (n DifferentCommand) describe() string {
	return hostAndAddr(n.Host, n.Addr) + ", which runs a different command or --nodes"
}

// DifferentStore reports an agent of the same job that hosts a store too, on another host than
// Config.Store of this agent names. The two do not meet.
type DifferentStore struct {
	Host string     `json:"host,omitempty"` // the name that the other agent gives itself
	Addr netip.Addr `json:"addr"`           // its address
}

// String names the agent and what the user can do.
func (n DifferentStore) String() string {
	return n.Agent() + " hosts another store for the same command; " +
		"for one job give all nodes the same --store"
}

// Agent is the name and the address of the agent.
func (n DifferentStore) Agent() string { return hostAndAddr(n.Host, n.Addr) }

func (n DifferentStore) describe() string {
	return n.Agent() + ", which hosts another store for the same command"
}

func (DifferentStore) notice() {}

// Rejected is the notice about an agent that does not belong to the job, a DifferentToken,
// DifferentVersion, DifferentCommand or DifferentStore.
type Rejected interface {
	Notice
	String() string
	Agent() string    // its name
	describe() string // as an object of a sentence
}

func hostAndAddr(host string, addr netip.Addr) string {
	if host != "" && host != addr.String() {
		return fmt.Sprintf("%s (%s)", host, addr)
	}
	return addr.String()
}

// RanksMissing reports that Hydra has not started all ranks yet. Which ones are missing is not
// known before all have started.
type RanksMissing struct {
	Ranks int `json:"ranks"` // number of ranks of the job
}

// NoMulticast is reported by an agent without a launcher that cannot search for the others by
// multicast.
type NoMulticast struct {
	Err error
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
