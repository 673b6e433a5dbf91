package check

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"rdzv/rdzv"
)

// Link is a connection from one node to another that was measured.
type Link struct {
	From      string  `json:"from"`
	To        string  `json:"to"`
	RoundTrip float64 `json:"round_trip_ms,omitempty"`
	Offset    float64 `json:"clock_offset_ms,omitempty"` // by how much the clock of To is ahead
	Error     string  `json:"error,omitempty"`           // why there is no connection
}

// maxPairs is the number of nodes up to which all pairs are measured.
const maxPairs = 64

// Peers returns to which other nodes a node measures its connections: to all of them; if there are
// more than maxPairs to the first one, and to those that are 1, 2, 4, ... nodes later, so that a
// node is at both ends of several connections.
func Peers(node, nodes int) (peers []int) {
	for distance := 1; distance < nodes; distance++ {
		to := (node + distance) % nodes
		if nodes <= maxPairs || to == 0 || distance&(distance-1) == 0 {
			peers = append(peers, to)
		}
	}
	return peers
}

// measured is a link between members.
type measured struct {
	rdzv.Link
	from, to int // positions among the members
}

// linksOf are the links between members.
func linksOf(members []rdzv.Member) (links []measured) {
	position := map[string]int{}
	for i, m := range members {
		position[m.ID] = i
	}
	for i, m := range members {
		for _, l := range m.Links {
			if to, known := position[l.To]; known {
				links = append(links, measured{l, i, to})
			}
		}
	}
	return links
}

// Disconnected are the problems of nodes that cannot connect to others: one for all nodes that
// cannot connect to the same ones for the same reason.
func Disconnected(members []rdzv.Member) (problems []rdzv.NodeProblem) {
	type target struct{ name, reason string }
	names, sources := nodeNames(members), map[target][]string{}
	var targets []target
	for _, l := range linksOf(members) {
		if l.Error == "" {
			continue
		}
		addr, _, _ := net.SplitHostPort(l.Addr)
		t := target{names[l.to] + " (" + addr + ")", l.Error}
		if sources[t] == nil {
			targets = append(targets, t)
		}
		sources[t] = append(sources[t], names[l.from])
	}
	for len(targets) > 0 {
		first := targets[0]
		isSame := func(t target) bool {
			return t.reason == first.reason && slices.Equal(sources[t], sources[first])
		}
		var to []string
		for _, t := range targets {
			if isSame(t) {
				to = append(to, t.name)
			}
		}
		targets = slices.DeleteFunc(targets, isSame)
		problems = append(problems, disconnected(to, first.reason, sources[first]))
	}
	return problems
}

func disconnected(to []string, reason string, from []string) rdzv.NodeProblem {
	const shown = 3
	list := strings.Join(to[:min(len(to), shown)], ", ")
	if more := len(to) - shown; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return rdzv.NodeProblem{Hosts: from, Problem: rdzv.Problem{
		Kind: rdzv.OtherProblem,
		Text: "cannot connect to " + list + ": " + reason,
		Hint: "the workers of all nodes connect to each other: let firewalls between the nodes pass " +
			"all TCP ports, or choose another network with Config.Networks",
	}}
}

// addLinks adds what was measured between the nodes.
func (r *Report) addLinks(members []rdzv.Member, names []string) {
	links := linksOf(members)
	if len(links) == 0 {
		return
	}
	for _, l := range links {
		r.Links = append(r.Links, Link{
			names[l.from], names[l.to], milliseconds(l.RoundTrip), milliseconds(l.Offset), l.Error,
		})
	}
	for _, p := range Disconnected(members) {
		r.Problems = append(r.Problems, Finding{p.Text, p.Hint, p.Hosts})
	}
	good := slices.DeleteFunc(links, func(l measured) bool { return l.Error != "" })
	text := fmt.Sprintf("%d of %d between the nodes", len(good), len(r.Links))
	if len(r.Nodes) > maxPairs {
		text = fmt.Sprintf("%d of a sample of %d between the nodes", len(good), len(r.Links))
	}
	r.addRow("connections", text, len(good) < len(r.Links))
	if len(good) > 0 {
		r.addRow("round trip", roundTrips(good, names), false)
		r.addOffsets(good, names)
	}
}

// addRow adds a row with a value for all nodes.
func (r *Report) addRow(fact, value string, warned bool) {
	all := Group{Value: value, Nodes: r.Nodes}
	r.Rows = append(r.Rows, Row{Fact: fact, Groups: []Group{all}, Warned: warned})
}

func roundTrips(links []measured, names []string) string {
	links = slices.Clone(links)
	slices.SortStableFunc(links, func(a, b measured) int { return int(a.RoundTrip - b.RoundTrip) })
	longest := links[len(links)-1]
	return fmt.Sprintf("%s (median), %s from %s to %s (longest)",
		inMilliseconds(links[len(links)/2].RoundTrip), inMilliseconds(longest.RoundTrip),
		names[longest.from], names[longest.to])
}

// maxOffset is the largest difference between clocks that is no cause for a warning.
const maxOffset = time.Second

// addOffsets adds the differences between the clocks of the first node and of the others.
func (r *Report) addOffsets(links []measured, names []string) {
	first := r.Nodes[0]
	row := rowOf{Row: Row{Fact: "clock offset"}, values: map[string][]string{}}
	row.add(first, "less than 1s")
	var largest time.Duration
	at := ""
	for _, l := range links {
		node, ahead := names[l.from], -l.Offset
		if names[l.to] != first {
			continue
		}
		if ahead.Abs() >= largest {
			largest, at = ahead.Abs(), node
		}
		if ahead.Abs() <= maxOffset {
			row.add(node, "less than 1s")
			continue
		}
		text := ahead.Abs().Round(time.Second).String() + " ahead of " + first
		if ahead < 0 {
			text = ahead.Abs().Round(time.Second).String() + " behind " + first
		}
		row.add(node, text)
		row.Warned = true
		r.Warnings = add(r.Warnings, "the clock is "+text+": times in logs and of files are misleading",
			"synchronise the clocks of all nodes, with chronyd, ntpd or systemd-timesyncd", node)
	}
	switch {
	case row.Warned:
		r.Rows = append(r.Rows, row.grouped())
	case at != "":
		r.addRow("clock offset", fmt.Sprintf("at most %s, between %s and %s", inMilliseconds(largest),
			first, at), false)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func inMilliseconds(d time.Duration) string { return fmt.Sprintf("%.2f ms", milliseconds(d)) }
