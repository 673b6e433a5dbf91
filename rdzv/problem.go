package rdzv

import (
	"maps"
	"slices"
)

// NodeProblem is a problem and the nodes that have it, as an error.
type NodeProblem struct {
	Problem
	Hosts     []string `json:"hosts,omitempty"` // sorted, at most 8; none if the job has one node
	MoreHosts int      `json:"more_hosts,omitempty"`
}

func (p NodeProblem) Error() string {
	if len(p.Hosts) == 0 {
		return p.Text
	}
	return p.Text + " (on " + list(p.Hosts, p.MoreHosts) + ")"
}

// clipped is problems with texts of the size that is allowed.
func clipped(problems []Problem) []Problem {
	problems = slices.Clone(problems)
	for i := range problems {
		p := &problems[i]
		p.Text, p.Hint = clip(p.Text), clip(p.Hint)
	}
	return problems
}

// problemsOf returns the problems of all members, sorted by text and grouped, and the
// number of those that are not shown.
func problemsOf(members []Member) (problems []NodeProblem, more int) {
	having := map[string][]Member{} // by text
	byText := map[string]Problem{}
	for _, m := range members {
		for _, p := range m.Problems {
			having[p.Text], byText[p.Text] = append(having[p.Text], m), p
		}
	}
	several := len(hostsOf(members)) > 1
	texts, more := cut(slices.Sorted(maps.Keys(byText)))
	for _, text := range texts {
		p := NodeProblem{Problem: byText[text]}
		if several {
			p.Hosts, p.MoreHosts = cut(hostsOf(having[text]))
		}
		problems = append(problems, p)
	}
	return problems, more
}
