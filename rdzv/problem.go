package rdzv

import (
	"maps"
	"slices"
)

// ProblemKind says what a problem is about.
type ProblemKind string

const (
	ProgramMissing       ProblemKind = "program_missing"        // there is no such file
	ProgramNotExecutable ProblemKind = "program_not_executable" // the file cannot be executed
	OtherProblem         ProblemKind = "other"                  // a limit, a device, a port, ...
)

// Problem is something that keeps a member from running its workers. It goes
// into the member so that the problems of all nodes are reported together, and
// all agents end with the same exit code.
type Problem struct {
	Kind ProblemKind `json:"kind"`           // required
	Text string      `json:"text"`           // one line, required; at most 2 KiB are kept
	Hint string      `json:"hint,omitempty"` // what to try, for people; at most 2 KiB are kept
}

// NodeProblem is a problem and the nodes that have it.
type NodeProblem struct {
	Problem
	Hosts     []string `json:"hosts,omitempty"` // sorted, the first 8; none if the job is on one node
	MoreHosts int      `json:"more_hosts,omitempty"`
}

func (p NodeProblem) String() string {
	if len(p.Hosts) == 0 {
		return p.Text
	}
	return p.Text + " (on " + list(p.Hosts, p.MoreHosts) + ")"
}

// clipped are the problems with texts that are short enough for the store.
func clipped(problems []Problem) []Problem {
	short := slices.Clone(problems)
	for i, p := range short {
		short[i].Text, short[i].Hint = clip(p.Text), clip(p.Hint)
	}
	return short
}

// problemsOf gathers the problems of all members, those that several have once, sorted
// by their texts; more is how many others there are.
func problemsOf(members []Member) (problems []NodeProblem, more int) {
	having := map[string][]Member{} // by text
	byText := map[string]Problem{}
	for _, m := range members {
		for _, p := range m.Problems {
			having[p.Text], byText[p.Text] = append(having[p.Text], m), p
		}
	}
	texts, more := cut(slices.Sorted(maps.Keys(byText)))
	for _, text := range texts {
		p := NodeProblem{Problem: byText[text]}
		if len(hostsOf(members)) > 1 {
			p.Hosts, p.MoreHosts = cut(hostsOf(having[text]))
		}
		problems = append(problems, p)
	}
	return problems, more
}
