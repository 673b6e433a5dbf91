package rdzv

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Roster says who is there and who is missing, as far as the leader can know.
type Roster struct {
	Here, Agents int
	Missing      []int    // launcher's ranks that are missing; nil where agents have no ranks
	Hosts        []string // nodes that are here, sorted
}

// String is for people: "3 of 4 agents are here; waiting for rank 2".
func (r Roster) String() string {
	s := fmt.Sprintf("%d of %d agents are here", r.Here, r.Agents)
	switch {
	case len(r.Missing) > 0:
		s += "; waiting for " + plural("rank", len(r.Missing)) + " " + list(r.Missing)
	case len(r.Hosts) > 0 && r.Here < r.Agents:
		s += " (" + plural("node", len(r.Hosts)) + " " + strings.Join(r.Hosts, ", ") + ")"
	}
	return s
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// listed is how many ranks are named before the rest is only counted.
const listed = 8

func list(ranks []int) string {
	names := make([]string, 0, listed)
	for _, r := range ranks[:min(len(ranks), listed)] {
		names = append(names, strconv.Itoa(r))
	}
	s := strings.Join(names, ", ")
	if more := len(ranks) - listed; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

func (l *Leader) roster() Roster {
	r := Roster{Here: len(l.members), Agents: l.config.Agents}
	here := map[int]bool{}
	for _, m := range l.members {
		here[m.Rank] = true
		r.Hosts = append(r.Hosts, m.Host)
	}
	slices.Sort(r.Hosts)
	r.Hosts = slices.Compact(r.Hosts)
	if !here[Any] {
		for rank := range r.Agents {
			if !here[rank] {
				r.Missing = append(r.Missing, rank)
			}
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
	return l.say(ctx, Verdict{
		Kind: Incomplete, Rank: Any, LocalRank: Any,
		Text: fmt.Sprintf("%v after %v", l.roster(), l.config.JoinTimeout),
	})
}
