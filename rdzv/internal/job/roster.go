package job

import (
	"slices"
	"strings"

	"rdzv/rdzv/internal/record"
)

// RosterOf returns the roster of a job with these members. nodes are those on which the launcher
// starts agents; none if they are not known. waiting are agents that are not members yet.
func RosterOf(members []Member, agents int, nodes []string, waiting ...Preparing) Roster {
	r := Roster{Joined: len(members), Agents: agents}
	r.Hosts, r.MoreHosts = record.Cut(record.HostsOf(members))
	var texts []string
	for _, p := range waiting {
		texts = append(texts, p.String())
		members = append(members, p.Member) // it is not missing
	}
	r.Waiting, r.MoreWaiting = record.Cut(record.Sorted(texts))
	r.Missing = missingOf(members, agents, func(m Member) int { return m.Rank })
	if r.Missing == nil {
		r.MissingNodes = missingOf(members, agents, func(m Member) int { return m.NodeRank })
		return r
	}
	absent := absentOf(members, nodes)
	// With as many agents on each node, so many are missing if no other node lacks one.
	if len(absent)*agents == (agents-len(members))*len(nodes) {
		r.Absent, r.MoreAbsent = record.Cut(absent)
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
	for n := 0; n < agents && len(missing) < record.MaxShown; n++ {
		if !joined[n] {
			missing = append(missing, n)
		}
	}
	return missing
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
