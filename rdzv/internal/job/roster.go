package job

import (
	"slices"
	"strings"

	"rdzv/rdzv/internal/record"
)

// RosterOf returns the roster of a job of so many tasks with these members. nodes are those on
// which the launcher starts agents; none if they are not known.
func RosterOf(members []record.Member, tasks int, nodes []string) record.Roster {
	r := record.Roster{Joined: record.TasksOf(members), Tasks: tasks}
	r.Hosts, r.MoreHosts = record.Cut(record.HostsOf(members))
	r.Launched = slices.ContainsFunc(members, record.Member.Launched)
	var ranks, nodeRanks []int
	for _, m := range members {
		for _, t := range m.Tasks {
			ranks, nodeRanks = append(ranks, t.Rank), append(nodeRanks, m.NodeRank)
		}
	}
	if r.Missing = missingOf(ranks, tasks); r.Missing == nil {
		r.MissingNodes = missingOf(nodeRanks, tasks)
		return r
	}
	absent := absentOf(members, nodes)
	// With as many tasks on each node, so many are missing if no other node lacks one.
	if len(absent)*tasks == (tasks-len(ranks))*len(nodes) {
		r.Absent, r.MoreAbsent = record.Cut(absent)
	}
	return r
}

// missingOf returns at most 8 of the numbers below a limit that are not there; none if one of those
// that are there is not known or there twice.
func missingOf(there []int, below int) (missing []int) {
	joined := map[int]bool{}
	for _, n := range there {
		joined[n] = true
	}
	if len(there) == 0 || joined[record.Unknown] || len(joined) < len(there) {
		return nil
	}
	for n := 0; n < below && len(missing) < record.MaxShown; n++ {
		if !joined[n] {
			missing = append(missing, n)
		}
	}
	return missing
}

// absentOf returns the nodes from which no agent has joined. A launcher may use short names.
func absentOf(members []record.Member, nodes []string) (absent []string) {
	short := func(name string) string { name, _, _ = strings.Cut(name, "."); return name }
	there := map[string]bool{}
	for _, m := range members {
		there[short(m.Host)] = true
	}
	for _, node := range nodes {
		if !there[short(node)] {
			absent = append(absent, node)
		}
	}
	return absent
}
