package meet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/meet/internal/gate"
	"rdzv/rdzv/meet/internal/hosts"
)

// A Notice is something that Meet reports while it continues. Its types are Searching, Alone,
// DifferentToken, DifferentVersion, DifferentCommand, DifferentStore, DifferentNodes, RanksMissing,
// NoMulticast, Disappeared and KeeperLost.
type Notice interface{ notice() }

// Alone is reported by an agent without a launcher if no other agent has connected to it yet.
type Alone struct {
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
	return hostAndAddr(n.Host, n.Addr) + " runs a different command or Config.Nodes; " +
		"if both belong to one job, give them the same Config.Job NAME"
}

// Agent is the name and the address of the agent.
func (n DifferentCommand) Agent() string { return hostAndAddr(n.Host, n.Addr) }

func (n DifferentCommand) describe() string {
	return hostAndAddr(n.Host, n.Addr) + ", which runs a different command or Config.Nodes"
}

// Rejected is the notice about an agent that does not belong to the job, a DifferentToken,
// DifferentVersion, DifferentCommand, DifferentStore or DifferentNodes.
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
func (Searching) notice()        {}
func (Alone) notice()            {}
func (DifferentToken) notice()   {}
func (DifferentVersion) notice() {}
func (DifferentCommand) notice() {}
func (RanksMissing) notice()     {}
func (NoMulticast) notice()      {}

// aloneAfter is how long an agent without a launcher waits for the first other agent before it
// reports Alone.
const aloneAfter = 3 * time.Second

// reportAlone reports after aloneAfter how other nodes can find this one, unless another agent has
// connected or ctx has ended.
//
// ps is nil without a search by multicast.
func reportAlone(ctx context.Context, c *Config, m *Meeting, rs *rejections, ps *peers) {
	if !pause(ctx, aloneAfter) || m.gate.Passed() {
		return
	}
	n := Alone{After: aloneAfter, JoinLine: m.JoinLine(), Secret: m.Key != nil}
	found := rs.notices() // agents that do not belong to the job explain why it is alone
	if ps != nil {
		heard, _ := ps.lastHeard()
		n.NoBeacon = heard == "" && len(found) == 0
	}
	switch usable, err := c.usableInterfaces(); {
	case len(found) > 0:
		n.Explained = true
	case c.Store == "":
		n.Store = m.Addr.Addr()
	case m.Addr.Addr().IsLoopback() && err == nil && len(usable) > 0:
		n.Store, n.Loopback = hosts.Addresses(usable)[0], c.Store
	default:
		n.Hint = "the other nodes need the same command, the same Config.Nodes and " +
			"Config.Store " + c.Store
	}
	if len(found) > 0 && !slices.ContainsFunc(found, isToken) {
		n.JoinLine = ""
	}
	c.Notify(n)
}

// maxRejections limits the memory and the number of reports, because anybody on the network can
// cause rejections.
const maxRejections = 16

// rejections collects the agents, probably of the same user, that have a different key.
type rejections struct {
	own    string            // name of this host
	others func() []Rejected // see Config; nil knows none
	notify func(Notice)
	mu     sync.Mutex
	list   []gate.Rejection
}

// add reports a rejection, but only one of each host, and tells whether it has. Another job there
// does not hide an agent of another version.
func (rs *rejections) add(r gate.Rejection) bool {
	same := func(known gate.Rejection) bool {
		there := known.Addr == r.Addr || known.Host != "" && known.Host == r.Host
		return there && isVersion(known.Reason) == isVersion(r.Reason)
	}
	rs.mu.Lock()
	isNew := len(rs.list) < maxRejections && !slices.ContainsFunc(rs.list, same)
	if isNew {
		rs.list = append(rs.list, r)
	}
	rs.mu.Unlock()
	if isNew && !(rs.here(r) && len(rs.known()) > 0) {
		rs.notify(noticeOf(r))
	}
	return isNew
}

// explain reports whether an agent of the job was reported that has a different token or version.
func (rs *rejections) explain() bool {
	return slices.ContainsFunc(rs.notices(), func(n Rejected) bool {
		_, version := n.(DifferentVersion)
		return version || isToken(n)
	})
}

func isVersion(err error) bool {
	_, is := errors.AsType[*protocol.VersionError](err)
	return is
}

func isToken(n Rejected) bool { _, is := n.(DifferentToken); return is }

// notices are about those that can be why no agent of the job has been found: not another job of
// the user on this host, since agents of one job are on different hosts.
func (rs *rejections) notices() (list []Rejected) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.list {
		if !rs.here(r) {
			list = append(list, noticeOf(r))
		}
	}
	return append(list, rs.known()...)
}

// here tells whether the rejection is that of another job on this host.
func (rs *rejections) here(r gate.Rejection) bool {
	return errors.Is(r.Reason, gate.ErrDifferentJob) && r.Host == rs.own
}

// known are the agents of other jobs on this host of which the caller knows more.
func (rs *rejections) known() []Rejected {
	if rs.others == nil {
		return nil
	}
	return rs.others()
}

// noticeOf returns what is reported about a rejection.
func noticeOf(r gate.Rejection) Rejected {
	switch {
	case errors.Is(r.Reason, gate.ErrDifferentJob):
		return DifferentCommand{Host: r.Host, Addr: r.Addr}
	case r.Reason == errOtherStore:
		return DifferentStore{Host: r.Host, Addr: r.Addr}
	}
	if v, is := errors.AsType[*protocol.VersionError](r.Reason); is {
		return DifferentVersion{
			Host: r.Host, Addr: r.Addr, Protocol: v.Other, Own: protocol.Version,
			Hosting: r.Hosting, Shared: v.Shared,
		}
	}
	return DifferentToken{
		Host: r.Host, Addr: r.Addr, Hosting: r.Hosting, Shared: r.Reason == gate.ErrOtherShared,
	}
}
