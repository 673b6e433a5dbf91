package job

import (
	"maps"
	"slices"

	"rdzv/rdzv/internal/record"
)

// ProblemsOf returns the problems of all members, sorted by text and grouped, and the
// number of those that are not shown.
func ProblemsOf(members []Member) (problems []NodeProblem, more int) {
	having := map[string][]Member{} // by text
	byText := map[string]Problem{}
	for _, m := range members {
		for _, p := range m.Problems {
			having[p.Text], byText[p.Text] = append(having[p.Text], m), p
		}
	}
	several := len(record.HostsOf(members)) > 1
	texts, more := record.Cut(slices.Sorted(maps.Keys(byText)))
	for _, text := range texts {
		p := NodeProblem{Problem: byText[text]}
		if several {
			p.Hosts, p.MoreHosts = record.Cut(record.HostsOf(having[text]))
		}
		problems = append(problems, p)
	}
	return problems, more
}
