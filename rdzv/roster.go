package rdzv

import (
	"fmt"
	"slices"
	"strings"
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
		s += "; " + plural("rank", missing) + " " + list(r.Missing, missing-len(r.Missing)) +
			r.whyMissing(missing)
	case len(r.MissingNodes) > 0:
		s += " (from " + list(r.Hosts, r.MoreHosts) + "); node " + plural("rank", missing) + " " +
			list(r.MissingNodes, missing-len(r.MissingNodes)) + areMissing(missing)
	case len(r.Hosts) > 0:
		s += " (from " + list(r.Hosts, r.MoreHosts) + ")"
	}
	if len(r.Waiting) > 0 {
		s += "; " + list(r.Waiting, r.MoreWaiting)
	}
	if len(r.Refused) > 0 && missing > 0 {
		s += "; refused because of a different token: " + list(r.Refused, r.MoreRefused)
	}
	if len(r.OtherVersion) > 0 && missing > 0 {
		s += "; refused because of another version of rdzv: " +
			list(r.OtherVersion, r.MoreOtherVersion)
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
		s += " on " + list(r.Absent, r.MoreAbsent)
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

// rosterOf returns the roster of a job with these members. nodes are those on which the launcher
// starts agents; none if they are not known. waiting are agents that are not members yet.
func rosterOf(members []Member, agents int, nodes []string, waiting ...preparing) Roster {
	r := Roster{Joined: len(members), Agents: agents}
	r.Hosts, r.MoreHosts = cut(hostsOf(members))
	var texts []string
	for _, p := range waiting {
		texts = append(texts, p.String())
		members = append(members, p.Member) // it is not missing
	}
	r.Waiting, r.MoreWaiting = cut(sorted(texts))
	r.Missing = missingOf(members, agents, func(m Member) int { return m.Rank })
	if r.Missing == nil {
		r.MissingNodes = missingOf(members, agents, func(m Member) int { return m.NodeRank })
		return r
	}
	absent := absentOf(members, nodes)
	// With as many agents on each node, so many are missing if no other node lacks one.
	if len(absent)*agents == (agents-len(members))*len(nodes) {
		r.Absent, r.MoreAbsent = cut(absent)
	}
	return r
}

// missingOf returns at most 8 of the numbers below agents that no member has; none if the number
// of a member is not known or not its own.
func missingOf(members []Member, agents int, number func(Member) int) (missing []int) {
	joined := map[int]bool{}
	for _, m := range members {
		joined[number(m)] = true
	}
	if len(members) == 0 || joined[Unknown] || len(joined) < len(members) {
		return nil
	}
	for n := 0; n < agents && len(missing) < maxShown; n++ {
		if !joined[n] {
			missing = append(missing, n)
		}
	}
	return missing
}

// String is "rank 1 on node2 waits: the file system of "/data" does not respond".
func (p preparing) String() string {
	who := p.Host
	if p.Rank != Unknown {
		who = fmt.Sprintf("rank %d on %s", p.Rank, p.Host)
	}
	return who + " waits: " + p.Waits
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
