package record

import (
	"fmt"
)

// Roster lists which agents have joined and which are missing, as far as the leader knows.
type Roster struct {
	Joined  int   `json:"joined"`            // number of agents that have joined
	Agents  int   `json:"agents"`            // number of agents of the job; the largest one
	Min     int   `json:"min,omitempty"`     // the smallest one, if the number may vary
	Missing []int `json:"missing,omitempty"` // at most 8 of the launcher's ranks, if known
	// MissingNodes are at most 8 node ranks, if all agents of a job without a launcher have one.
	MissingNodes []int    `json:"missing_nodes,omitempty"`
	Hosts        []string `json:"hosts,omitempty"` // that have joined, sorted, at most 8
	MoreHosts    int      `json:"more_hosts,omitempty"`
	// Absent are at most 8 nodes from which no agent has joined, if these are known to be the nodes
	// of all missing ranks.
	Absent     []string `json:"absent,omitempty"`
	MoreAbsent int      `json:"more_absent,omitempty"`
	// Refused are at most 8 agents that could not join because their tokens differ.
	Refused     []string `json:"refused,omitempty"`
	MoreRefused int      `json:"more_refused,omitempty"`
	// OtherVersion are at most 8 agents that could not join because of another version of the
	// protocol.
	OtherVersion     []string `json:"other_version,omitempty"`
	MoreOtherVersion int      `json:"more_other_version,omitempty"`
	// Waiting are at most 8 agents that have connected and wait for files that do not respond.
	Waiting     []string `json:"waiting,omitempty"`
	MoreWaiting int      `json:"more_waiting,omitempty"`
	// Unattended says that no launcher reports what has happened to missing agents.
	Unattended bool `json:"unattended,omitempty"`
}

// String returns a line for people: "3 of 4 agents joined; rank 2 has not started rdzv or cannot
// connect (see the launcher's messages above)".
func (r Roster) String() string {
	s := fmt.Sprintf("%d of %d agents joined", r.Joined, r.Agents)
	missing := r.Agents - r.Joined - len(r.Waiting) - r.MoreWaiting
	switch {
	case missing <= 0:
	case len(r.Missing) > 0:
		s += "; " + Plural("rank", missing) + " " + List(r.Missing, missing-len(r.Missing)) +
			r.whyMissing(missing)
	case len(r.MissingNodes) > 0:
		s += " (from " + List(r.Hosts, r.MoreHosts) + "); node " + Plural("rank", missing) + " " +
			List(r.MissingNodes, missing-len(r.MissingNodes)) + areMissing(missing)
	case len(r.Hosts) > 0:
		s += " (from " + List(r.Hosts, r.MoreHosts) + ")"
	}
	if len(r.Waiting) > 0 {
		s += "; " + List(r.Waiting, r.MoreWaiting)
	}
	if len(r.Refused) > 0 && missing > 0 {
		s += "; refused because of a different token: " + List(r.Refused, r.MoreRefused)
	}
	if len(r.OtherVersion) > 0 && missing > 0 {
		s += "; refused because of another version of rdzv: " +
			List(r.OtherVersion, r.MoreOtherVersion)
	}
	if r.Min > 0 {
		s += fmt.Sprintf("; the job needs at least %d", r.Min)
	}
	return s
}

// whyMissing says why so many ranks may be missing, and where more is known about it.
func (r Roster) whyMissing(ranks int) string {
	have, its := " has", "its"
	if ranks > 1 {
		have, its = " have", "their"
	}
	if len(r.Refused)+len(r.OtherVersion) > 0 { // they may have been refused
		return areMissing(ranks)
	}
	s := have + " not started rdzv"
	if len(r.Absent) > 0 {
		s += " on " + List(r.Absent, r.MoreAbsent)
	}
	if r.Unattended {
		return s + " or cannot connect (see " + its + " output)"
	}
	return s + " or cannot connect (see the launcher's messages above)"
}

func areMissing(n int) string {
	if n > 1 {
		return " are missing"
	}
	return " is missing"
}

// String is "rank 1 on node2 waits: the file system of "/data" does not respond".
func (p Preparing) String() string {
	who := p.Host
	if p.Rank != Unknown {
		who = fmt.Sprintf("rank %d on %s", p.Rank, p.Host)
	}
	return who + " waits: " + p.Waits
}
