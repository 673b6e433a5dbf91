package rdzv

import (
	"fmt"
	"slices"
)

// Roster says who is there and who is missing, as far as the leader can know.
type Roster struct {
	Joined    int      `json:"joined"`            // agents
	Agents    int      `json:"agents"`            // of the job
	Missing   []int    `json:"missing,omitempty"` // launcher's ranks, the first 8; none where agents have no ranks
	Hosts     []string `json:"hosts,omitempty"`   // nodes that are here, sorted, the first 8
	MoreHosts int      `json:"more_hosts,omitempty"`
}

// String is for people: "3 of 4 agents joined; waiting for rank 2".
func (r Roster) String() string {
	s := fmt.Sprintf("%d of %d agents joined", r.Joined, r.Agents)
	missing := r.Agents - r.Joined
	switch {
	case missing <= 0:
	case len(r.Missing) > 0:
		s += "; waiting for " + plural("rank", missing) + " " + list(r.Missing, missing-len(r.Missing))
	case len(r.Hosts) > 0:
		s += " (from " + list(r.Hosts, r.MoreHosts) + ")"
	}
	return s
}

// rosterOf says who of so many agents is there.
func rosterOf(members []Member, agents int) Roster {
	r := Roster{Joined: len(members), Agents: agents}
	r.Hosts, r.MoreHosts = cut(hostsOf(members))
	here := map[int]bool{}
	for _, m := range members {
		here[m.Rank] = true
	}
	if len(members) == 0 || here[Unknown] {
		return r
	}
	for rank := 0; rank < agents && len(r.Missing) < maxShown; rank++ {
		if !here[rank] {
			r.Missing = append(r.Missing, rank)
		}
	}
	return r
}

// hostsOf are the members' nodes, sorted.
func hostsOf(members []Member) []string {
	hosts := make([]string, len(members))
	for i, m := range members {
		hosts[i] = m.Host
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}
