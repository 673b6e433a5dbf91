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
	case r.Here >= r.Agents:
	case len(r.Missing) > 0:
		s += "; waiting for " + plural("rank", len(r.Missing)) + " " + some(r.Missing, strconv.Itoa)
	case len(r.Hosts) > 0:
		s += " (" + plural("node", len(r.Hosts)) + " " + some(r.Hosts, strings.Clone) + ")"
	}
	return s
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// some names the first things, and counts the rest.
func some[T any](things []T, text func(T) string) string {
	names := make([]string, 0, told)
	for _, t := range things[:min(len(things), told)] {
		names = append(names, text(t))
	}
	s := strings.Join(names, ", ")
	if more := len(things) - told; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

func (l *Leader) roster() Roster {
	r := Roster{Here: len(l.order), Agents: l.config.Agents}
	here := map[int]bool{}
	for _, a := range l.order {
		here[a.Rank] = true
		r.Hosts = append(r.Hosts, a.Host)
	}
	slices.Sort(r.Hosts)
	r.Hosts = slices.Compact(r.Hosts)
	if len(l.order) > 0 && !here[Any] {
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
	text, p := l.roster().String(), l.problems()
	if p.Text != "" {
		text += "\n" + p.Text
	}
	return l.say(ctx, Verdict{Kind: Incomplete, Rank: Any, LocalRank: Any, Text: text, Hint: p.Hint})
}
