package rdzv

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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

// told is how many problems are told, and how many agents named, before the rest
// is only counted.
const told = 8

// problems gathers the problems of all members, those that several have once, sorted by
// their texts; more is how many others there are.
func (l *Leader) problems() (all []NodeProblem, more int) {
	hosts := map[string]bool{}
	where, problems := map[string][]string{}, map[string]Problem{} // by text
	for _, a := range l.order {
		hosts[a.Host] = true
		for _, p := range a.Problems {
			problems[p.Text] = p
			if !slices.Contains(where[p.Text], a.Host) {
				where[p.Text] = append(where[p.Text], a.Host)
			}
		}
	}
	texts := slices.Sorted(maps.Keys(problems))
	for _, text := range texts[:min(len(texts), told)] {
		p := NodeProblem{Problem: problems[text]}
		if len(hosts) > 1 {
			on := slices.Sorted(slices.Values(where[text]))
			p.Hosts = on[:min(len(on), told)]
			p.MoreHosts = len(on) - len(p.Hosts)
		}
		all = append(all, p)
	}
	return all, len(texts) - len(all)
}

// unready is the verdict on a job that could not begin for this reason.
func unready(text string) Verdict {
	return Verdict{Kind: Unready, Rank: Any, LocalRank: Any, Text: text}
}

// problemsText is a line for each problem.
func (v *Verdict) problemsText() string {
	var lines []string
	for _, p := range v.Problems {
		lines = append(lines, p.String())
	}
	if v.MoreProblems > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", v.MoreProblems))
	}
	return strings.Join(lines, "\n")
}
