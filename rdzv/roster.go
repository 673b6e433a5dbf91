package rdzv

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Roster says who is there and who is missing, as far as the leader can know.
type Roster struct {
	Here      int      `json:"here"`              // agents
	Agents    int      `json:"agents"`            // of the job
	Missing   []int    `json:"missing,omitempty"` // launcher's ranks, the first 8; none where agents have no ranks
	Hosts     []string `json:"hosts,omitempty"`   // nodes that are here, sorted, the first 8
	MoreHosts int      `json:"more_hosts,omitempty"`
}

// String is for people: "3 of 4 agents are here; waiting for rank 2".
func (r Roster) String() string {
	s := fmt.Sprintf("%d of %d agents are here", r.Here, r.Agents)
	missing := r.Agents - r.Here
	switch {
	case missing <= 0:
	case len(r.Missing) > 0:
		s += "; waiting for " + plural("rank", missing) + " " + list(r.Missing, missing-len(r.Missing))
	case len(r.Hosts) > 0:
		s += " (" + plural("node", len(r.Hosts)) + " " + list(r.Hosts, r.MoreHosts) + ")"
	}
	return s
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// list names things, and counts those that are left out.
func list[T any](things []T, more int) string {
	names := make([]string, 0, len(things))
	for _, t := range things {
		names = append(names, fmt.Sprint(t))
	}
	s := strings.Join(names, ", ")
	if more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

func (l *Leader) roster() Roster {
	r := Roster{Here: len(l.order), Agents: l.config.Agents}
	here := map[int]bool{}
	var hosts []string
	for _, a := range l.order {
		here[a.Rank] = true
		hosts = append(hosts, a.Host)
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	r.Hosts = hosts[:min(len(hosts), told)]
	r.MoreHosts = len(hosts) - len(r.Hosts)
	for rank := 0; len(l.order) > 0 && !here[Any] && rank < r.Agents && len(r.Missing) < told; rank++ {
		if !here[rank] {
			r.Missing = append(r.Missing, rank)
		}
	}
	return r
}

func (l *Leader) tellWaiting() {
	if l.config.Waiting != nil && !l.begun && l.verdict == nil {
		l.config.Waiting(l.roster())
	}
}

// giveUp ends a job whose agents have not all come in time.
func (l *Leader) giveUp(ctx context.Context) error {
	if l.begun {
		return nil
	}
	roster := l.roster()
	v := Verdict{Kind: Incomplete, Rank: Any, LocalRank: Any, Roster: &roster}
	v.Problems, v.MoreProblems = l.problems()
	return l.say(ctx, v)
}
