package check

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"rdzv/internal/plural"
)

// Link is a connection from one node to another that was measured.
type Link struct {
	From      string  `json:"from"`
	To        string  `json:"to"`
	RoundTrip float64 `json:"round_trip_ms,omitempty"`
	Offset    float64 `json:"clock_offset_ms,omitempty"` // by how much the clock of To is ahead
	Error     string  `json:"error,omitempty"`           // why there is no connection
}

// Measured are the connections that an agent has measured: to other nodes, and to MASTER_PORT, nil
// if it has not been tried.
type Measured struct {
	Links  []Connection `json:"links,omitempty"`
	Master *Connection  `json:"master,omitempty"`
}

// Connection is one that an agent has measured.
type Connection struct {
	To        string        `json:"to"`   // ID of the agent at the other end
	Addr      string        `json:"addr"` // at which it was to answer, with a port
	RoundTrip time.Duration `json:"round_trip,omitempty"`
	Offset    time.Duration `json:"offset,omitempty"` // by how much the other node's clock is ahead
	Error     string        `json:"error,omitempty"`  // why there is no connection; "" if there is one
}

// Targets are what the agents try to connect to.
type Targets struct {
	Nodes []Target `json:"nodes"` // one agent of each node that answers, in the order of the nodes
	Rank0 string   `json:"rank0"` // ID of the agent that answers on MASTER_PORT
}

// Target is an agent that answers others.
type Target struct {
	ID   string `json:"id"`
	Addr string `json:"addr"` // see Node.Answers
}

// TargetsOf are those of the agents of a world.
func TargetsOf(nodes []Node) (t Targets) {
	seen := map[string]bool{}
	for _, m := range nodes {
		if m.Rank == 0 {
			t.Rank0 = m.ID
		}
		if m.Answers != "" && !seen[m.node()] {
			seen[m.node()] = true
			t.Nodes = append(t.Nodes, Target{m.ID, m.Answers})
		}
	}
	return t
}

// For returns to which of the nodes an agent measures its connections; none if another agent of its
// node does.
func (t Targets) For(id string) (targets []Target) {
	node := slices.IndexFunc(t.Nodes, func(t Target) bool { return t.ID == id })
	if node < 0 {
		return nil
	}
	for _, to := range Peers(node, len(t.Nodes)) {
		targets = append(targets, t.Nodes[to])
	}
	return targets
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

// measured is a link between nodes.
type measured struct {
	Connection
	from, to int // positions among the nodes
}

// linksOf are the links between nodes.
func linksOf(nodes []Node) (links []measured) {
	position := map[string]int{}
	for i, m := range nodes {
		position[m.ID] = i
	}
	for i, m := range nodes {
		for _, l := range m.Links {
			if to, known := position[l.To]; known {
				links = append(links, measured{l, i, to})
			}
		}
	}
	return links
}

// addMaster adds which nodes reach MASTER_PORT.
func (r *Report) addMaster(nodes []Node, names []string) {
	var addr string
	var tried, failed []string
	for i, m := range nodes {
		master := m.Master
		if master == nil {
			continue
		}
		addr = master.Addr
		tried = append(tried, names[i])
		if master.Error == "" {
			continue
		}
		failed = append(failed, names[i])
		r.Problems = add(r.Problems, "cannot connect to MASTER_PORT ("+addr+"): "+master.Error,
			"workers connect to rank 0 there: let firewalls pass that port, or choose another one "+
				"with --master-port, or another network with --net", names[i])
	}
	if len(tried) > 0 {
		all, bad := len(distinct(tried)), len(distinct(failed))
		r.addRow("MASTER_PORT", fmt.Sprintf("%s, from %d of %s", addr, all-bad,
			plural.Of(all, "node")), bad > 0)
	}
}

func distinct(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// disconnected are the problems of nodes that cannot connect to others: one for all nodes that
// cannot connect to the same ones for the same reason.
func disconnected(nodes []Node, names []string) (findings []Finding) {
	type target struct{ name, reason string }
	sources := map[target][]string{}
	var targets []target
	for _, l := range linksOf(nodes) {
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
		findings = append(findings, unreached(to, first.reason, sources[first]))
	}
	return findings
}

func unreached(to []string, reason string, from []string) Finding {
	const shown = 3
	list := strings.Join(to[:min(len(to), shown)], ", ")
	if more := len(to) - shown; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return Finding{
		Text: "cannot connect to " + list + ": " + reason,
		Hint: "the workers of all nodes connect to each other: let firewalls between the nodes pass " +
			"all TCP ports, or choose another network with --net",
		Nodes: from,
	}
}

// addLinks adds what was measured between the nodes.
func (r *Report) addLinks(nodes []Node, names []string) {
	links := linksOf(nodes)
	if len(links) == 0 {
		return
	}
	for _, l := range links {
		r.Links = append(r.Links, Link{
			names[l.from], names[l.to], milliseconds(l.RoundTrip), milliseconds(l.Offset), l.Error,
		})
	}
	r.Problems = append(r.Problems, disconnected(nodes, names)...)
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
