package rdzv

import (
	"maps"
	"slices"
)

// ProblemKind is the kind of a problem.
type ProblemKind string

const (
	ProgramMissing       ProblemKind = "program_missing"        // the file does not exist
	ProgramNotExecutable ProblemKind = "program_not_executable" // the file cannot be executed
	OtherProblem         ProblemKind = "other"                  // a limit, a device, a port, ...
)

// Problem is what prevents an agent from running its workers. It is part of the member, so
// that the problems of all nodes are reported together and all agents have the same exit
// code.
type Problem struct {
	Kind ProblemKind `json:"kind"`           // required
	Text string      `json:"text"`           // required, one line; at most 2 KiB
	Hint string      `json:"hint,omitempty"` // a suggestion for people; at most 2 KiB
}

// NodeProblem is a problem and the nodes that have it.
type NodeProblem struct {
	Problem
	Hosts     []string `json:"hosts,omitempty"` // sorted, at most 8; none if the job has one node
	MoreHosts int      `json:"more_hosts,omitempty"`
}

func (p NodeProblem) String() string {
	if len(p.Hosts) == 0 {
		return p.Text
	}
	return p.Text + " (on " + list(p.Hosts, p.MoreHosts) + ")"
}

// clipped returns the problems with texts of at most maxText.
func clipped(problems []Problem) []Problem {
	short := slices.Clone(problems)
	for i, p := range short {
		short[i].Text, short[i].Hint = clip(p.Text), clip(p.Hint)
	}
	return short
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
