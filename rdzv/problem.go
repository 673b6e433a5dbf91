package rdzv

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Problem is something that keeps a member from running its workers. It goes
// into the member so that the problems of all nodes are reported together, and
// all agents end with the same exit code.
type Problem struct {
	Code int    `json:"code"`           // the job's exit code, such as 127; 1 to 255
	Text string `json:"text"`           // one line; at most 2 KiB are kept
	Hint string `json:"hint,omitempty"` // what to try, for people; at most 2 KiB are kept
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

// problems makes one problem of all that the members have: a line each with the
// nodes that have it, what to try, and the highest exit code, so that the order in
// which members join does not matter. It is empty if no member has any.
func (l *Leader) problems() (all Problem) {
	hosts := map[string]bool{}
	where, hints := map[string][]string{}, map[string]string{} // by problem
	for _, a := range l.order {
		hosts[a.Host] = true
		for _, p := range a.Problems {
			all.Code, hints[p.Text] = max(all.Code, p.Code), p.Hint
			if !slices.Contains(where[p.Text], a.Host) {
				where[p.Text] = append(where[p.Text], a.Host)
			}
		}
	}
	var lines, try []string
	texts := slices.Sorted(maps.Keys(where))
	for _, text := range texts[:min(len(texts), told)] {
		if hint := hints[text]; hint != "" && !slices.Contains(try, hint) {
			try = append(try, hint)
		}
		if len(hosts) > 1 {
			on := slices.Sorted(slices.Values(where[text]))
			text += " (on " + some(on, strings.Clone) + ")"
		}
		lines = append(lines, text)
	}
	if more := len(texts) - told; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	all.Text, all.Hint = strings.Join(lines, "\n"), strings.Join(try, "\n")
	return all
}

// unready is the verdict on a job that could not begin. Code 0 leaves the exit
// code to the reader.
func unready(p Problem) Verdict {
	return Verdict{Kind: Unready, Rank: Any, LocalRank: Any, Text: p.Text, Hint: p.Hint, Code: p.Code}
}
