package rdzv

import (
	"fmt"
	"slices"
	"strings"
)

// Roster lists which agents have joined and which are missing, as far as the leader knows.
type Roster struct {
	Joined    int      `json:"joined"`            // number of agents that have joined
	Agents    int      `json:"agents"`            // number of agents of the job; the largest one
	Min       int      `json:"min,omitempty"`     // the smallest one, if the number may vary
	Missing   []int    `json:"missing,omitempty"` // at most 8 of the launcher's ranks, if known
	Hosts     []string `json:"hosts,omitempty"`   // that have joined, sorted, at most 8
	MoreHosts int      `json:"more_hosts,omitempty"`
	// Absent are at most 8 nodes from which no agent has joined, if these are known to be the nodes
	// of all missing ranks.
	Absent     []string `json:"absent,omitempty"`
	MoreAbsent int      `json:"more_absent,omitempty"`
}

// String returns a line for people: "3 of 4 agents joined; rank 2 has not started rdzv or cannot
// connect (see the launcher's messages above)".
func (r Roster) String() string {
	s := fmt.Sprintf("%d of %d agents joined", r.Joined, r.Agents)
	missing := r.Agents - r.Joined
	switch {
	case missing <= 0:
	case len(r.Missing) > 0:
		have := " has"
		if missing > 1 {
			have = " have"
		}
		s += "; " + plural("rank", missing) + " " + list(r.Missing, missing-len(r.Missing)) + have +
			" not started rdzv"
		if len(r.Absent) > 0 {
			s += " on " + list(r.Absent, r.MoreAbsent)
		}
		s += " or cannot connect (see the launcher's messages above)"
	case len(r.Hosts) > 0:
		s += " (from " + list(r.Hosts, r.MoreHosts) + ")"
	}
	if r.Min > 0 {
		s += fmt.Sprintf("; the job needs at least %d", r.Min)
	}
	return s
}

// rosterOf returns the roster of a job with these members. nodes are those on which the launcher
// starts agents; none if they are not known.
func rosterOf(members []Member, agents int, nodes []string) Roster {
	r := Roster{Joined: len(members), Agents: agents}
	r.Hosts, r.MoreHosts = cut(hostsOf(members))
	joined := map[int]bool{}
	for _, m := range members {
		joined[m.Rank] = true
	}
	if len(members) == 0 || joined[Unknown] {
		return r
	}
	for rank := 0; rank < agents && len(r.Missing) < maxShown; rank++ {
		if !joined[rank] {
			r.Missing = append(r.Missing, rank)
		}
	}
	absent := absentOf(members, nodes)
	// With as many agents on each node, so many are missing if no other node lacks one.
	if len(absent)*agents == (agents-len(members))*len(nodes) {
		r.Absent, r.MoreAbsent = cut(absent)
	}
	return r
}

// absentOf returns the nodes from which no agent has joined. A launcher may use short names.
func absentOf(members []Member, nodes []string) (absent []string) {
	short := func(name string) string { name, _, _ = strings.Cut(name, "."); return name }
	for _, node := range nodes {
		isThere := func(m Member) bool { return short(m.Host) == short(node) }
		if !slices.ContainsFunc(members, isThere) {
			absent = append(absent, node)
		}
	}
	return absent
}

// hostsOf returns the hosts of the members, sorted, each once.
func hostsOf(members []Member) []string {
	hosts := make([]string, len(members))
	for i, m := range members {
		hosts[i] = m.Host
	}
	return sorted(hosts)
}

// sorted returns the hosts in order, each once.
func sorted(hosts []string) []string {
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// maxShown is how many elements of a list are shown; the others are counted.
const maxShown = 8

// cut returns the elements that are shown and the number of the others.
func cut[T any](all []T) (shown []T, more int) {
	shown = all[:min(len(all), maxShown)]
	return shown, len(all) - len(shown)
}

// list formats the result of cut: "a, b and 2 more".
func list[T any](shown []T, more int) string {
	texts := make([]string, len(shown))
	for i, e := range shown {
		texts[i] = fmt.Sprint(e)
	}
	s := strings.Join(texts, ", ")
	if more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
