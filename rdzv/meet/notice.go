package meet

import (
	"fmt"
	"net/netip"
	"time"
)

// A Notice is something that Meet reports while it goes on looking. The types of this file are all
// there are.
type Notice interface{ notice() }

// Alone is reported by an agent without a launcher when it hosts, or would, and nobody has
// connected to it for a while.
type Alone struct {
	After    time.Duration
	Store    netip.Addr // what to give to --store on every node; not valid where --store was given
	JoinLine string     // what to put before the command on another node, see Meeting.JoinLine
	Secret   bool       // JoinLine holds the job's key, which must not end up in a log file
}

// DifferentToken is an agent of the same job (the same line, or the same --job) that has another
// secret.
type DifferentToken struct {
	Host string     `json:"host,omitempty"` // the name it gives itself, made harmless but not verified; "" if it gave none
	Addr netip.Addr `json:"addr"`           // where it came from, or was asked
}

// Error is for the user: who it is, and what helps.
func (n DifferentToken) Error() string {
	return hostAndAddr(n.Host, n.Addr) + " has a different token: copy ~/.config/rdzv/token " +
		"from one node to the other, or start rdzv here with RDZV_JOIN=..."
}

// DifferentCommand is an agent of another job: another line, or another --job.
type DifferentCommand struct {
	Host string     `json:"host,omitempty"` // as in DifferentToken
	Addr netip.Addr `json:"addr"`           // as in DifferentToken
}

// Error is for the user: who it is, and what helps.
func (n DifferentCommand) Error() string {
	return hostAndAddr(n.Host, n.Addr) + " runs a different command: " +
		"give both the same --job NAME, or each job its own port"
}

func hostAndAddr(host string, addr netip.Addr) string {
	if host != "" && host != addr.String() {
		return fmt.Sprintf("%s (%s)", host, addr)
	}
	return addr.String()
}

// RanksMissing is reported when Hydra has not started all ranks for a while; which are missing
// cannot be known before all have started.
type RanksMissing struct {
	Ranks int `json:"ranks"` // in all
}

// NoMulticast is reported by an agent without a launcher that cannot look for the others by
// multicast.
type NoMulticast struct {
	Err error
}

func (Alone) notice()            {}
func (DifferentToken) notice()   {}
func (DifferentCommand) notice() {}
func (RanksMissing) notice()     {}
func (NoMulticast) notice()      {}
