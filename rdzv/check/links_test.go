package check

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rdzv/rdzv"
)

// All pairs of up to 64 nodes are measured. In larger jobs every node measures to the first one,
// and is at both ends of several connections, whose number grows slowly.
func TestPeers(t *testing.T) {
	for _, nodes := range []int{1, 2, 3, 64, 65, 100, 1000} {
		to := make([]int, nodes)
		for node := range nodes {
			peers := Peers(node, nodes)
			for _, p := range peers {
				to[p]++
			}
			unique := slices.Compact(slices.Sorted(slices.Values(peers)))
			if len(unique) != len(peers) || slices.Contains(peers, node) {
				t.Fatalf("node %d of %d: peers %v", node, nodes, peers)
			}
			switch {
			case nodes <= 64 && len(peers) != nodes-1:
				t.Errorf("node %d of %d: %d peers", node, nodes, len(peers))
			case nodes > 64 && (len(peers) < 7 || len(peers) > 11):
				t.Errorf("node %d of %d: %d peers", node, nodes, len(peers))
			case nodes > 64 && node > 0 && !slices.Contains(peers, 0):
				t.Errorf("node %d of %d does not measure to the first one", node, nodes)
			}
		}
		if least := slices.Min(to); nodes > 1 && least < min(nodes-1, 7) {
			t.Errorf("%d nodes: only %d measure to one of them", nodes, least)
		}
	}
}

// linked are members of n nodes with links between all of them: of 1 ms, and of 9 ms from node2 to
// node1.
func linked(n int, offset func(node int) time.Duration) (members []Node) {
	for i := range n {
		m := Node{Member: rdzv.Member{
			ID: fmt.Sprint(i), Node: fmt.Sprint(i), Host: fmt.Sprintf("node%d", i+1), Tasks: rdzv.Unplaced(1),
		}}
		for _, to := range Peers(i, n) {
			l := Connection{
				To: fmt.Sprint(to), Addr: fmt.Sprintf("10.0.0.%d:40000", to+1),
				RoundTrip: time.Millisecond, Offset: offset(to) - offset(i),
			}
			if i == 1 && to == 0 {
				l.RoundTrip = 9 * time.Millisecond
			}
			m.Links = append(m.Links, l)
		}
		members = append(members, m)
	}
	return members
}

// block fails the links between nodes for which it says so.
func block(members []Node, blocked func(from, to int) bool) []Node {
	for i, m := range members {
		for k, l := range m.Links {
			to := slices.IndexFunc(members, func(m Node) bool { return m.ID == l.To })
			if blocked(i, to) {
				m.Links[k] = Connection{To: l.To, Addr: l.Addr, Error: "connection timed out"}
			}
		}
	}
	return members
}

func noOffset(int) time.Duration { return 0 }

func TestDisconnected(t *testing.T) {
	for name, c := range map[string]struct {
		nodes   int
		blocked func(from, to int) bool
		want    []string // texts and nodes
	}{
		"none": {3, func(from, to int) bool { return false }, nil},
		"one direction": {5, func(from, to int) bool { return from == 2 && to == 4 }, []string{
			"cannot connect to node5 (10.0.0.5): connection timed out [node3]",
		}},
		"a node that nobody reaches": {64, func(from, to int) bool { return to == 4 }, []string{
			"cannot connect to node5 (10.0.0.5): connection timed out [63 nodes]",
		}},
		"two parts": {8, func(from, to int) bool { return from/4 != to/4 }, []string{
			"cannot connect to node5 (10.0.0.5), node6 (10.0.0.6), node7 (10.0.0.7) and 1 more: " +
				"connection timed out [node1 node2 node3 node4]",
			"cannot connect to node1 (10.0.0.1), node2 (10.0.0.2), node3 (10.0.0.3) and 1 more: " +
				"connection timed out [node5 node6 node7 node8]",
		}},
	} {
		members := block(linked(c.nodes, noOffset), c.blocked)
		var got []string
		r := Of("check-x", c.nodes, members)
		for _, p := range r.Problems {
			on := fmt.Sprint(p.Nodes)
			if len(p.Nodes) > 8 {
				on = fmt.Sprintf("[%d nodes]", len(p.Nodes))
			}
			got = append(got, p.Text+" "+on)
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q\nwant %q", name, got, c.want)
		}
		r.AddProblems(&rdzv.Verdict{Kind: rdzv.Unready, Problems: r.VerdictProblems()})
		if len(r.Problems) != len(c.want) {
			t.Errorf("%s: %d problems in the report with those of the verdict", name, len(r.Problems))
		}
	}
}

// rows are the rows about links, as "fact: value nodes; ...", with "!" if there is a warning.
func rows(r Report) (lines []string) {
	for _, row := range r.Rows {
		line := row.Fact + ":"
		if row.Warned {
			line = "! " + line
		}
		for _, g := range row.Groups {
			line += " " + g.Value
			if len(g.Nodes) < len(r.Nodes) {
				line += fmt.Sprint(" ", g.Nodes, ";")
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func TestLinkRows(t *testing.T) {
	wrong := func(node int) time.Duration {
		return []time.Duration{0, 200 * time.Second, -3 * time.Hour, 10 * time.Millisecond}[node%4]
	}
	close := func(node int) time.Duration { return time.Duration(node) * 10 * time.Microsecond }
	pair := func(from, to int) bool { return from == 2 && to == 1 }
	all := func(from, to int) bool { return true }
	trips := "round trip: 1.00 ms (median), 9.00 ms from node2 to node1 (longest)"
	for name, c := range map[string]struct {
		members []Node
		want    []string
	}{
		"one node": {linked(1, noOffset), nil},
		"good clocks": {linked(3, close), []string{
			"connections: 6 of 6 between the nodes", trips,
			"clock offset: at most 0.02 ms, between node1 and node3",
		}},
		"wrong clocks": {linked(4, wrong), []string{
			"connections: 12 of 12 between the nodes", trips,
			"! clock offset: less than 1s [node1 node4]; 3m20s ahead of node1 [node2]; " +
				"3h0m0s behind node1 [node3];",
		}},
		"one pair": {block(linked(3, noOffset), pair), []string{
			"! connections: 5 of 6 between the nodes", trips,
			"clock offset: at most 0.00 ms, between node1 and node3",
		}},
		"no connection": {block(linked(3, noOffset), all), []string{
			"! connections: 0 of 6 between the nodes",
		}},
		"sample": {linked(65, noOffset), []string{
			"connections: 512 of a sample of 512 between the nodes", trips,
			"clock offset: at most 0.00 ms, between node1 and node65",
		}},
	} {
		r := Of("check-x", len(c.members), c.members)
		if got := rows(r); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q\nwant %q", name, got, c.want)
		}
		for _, w := range r.Warnings {
			if !strings.HasPrefix(w.Text, "the clock is 3") || len(w.Nodes) != 1 {
				t.Errorf("%s: warning %+v", name, w)
			}
		}
	}
}

// MASTER_PORT is a row, and an error on the nodes that do not reach it. Agents that have not tried it,
// such as a second one of a node, do not count.
func TestMasterPort(t *testing.T) {
	tried := func(failing ...int) []Node {
		nodes := append(linked(3, noOffset), agent(node("0"), "0b"))
		for i := range 3 {
			master := &Connection{To: "0", Addr: "10.0.0.1:29500"}
			nodes[i].Measured = Measured{Master: master}
			if slices.Contains(failing, i) {
				master.Error = "connection timed out"
			}
		}
		return nodes
	}
	for name, c := range map[string]struct {
		nodes      []Node
		row, error string
	}{
		"not tried": {linked(1, noOffset), "", ""},
		"reached":   {tried(), "MASTER_PORT: 10.0.0.1:29500, from 3 of 3 nodes", ""},
		"refused": {tried(1, 2), "! MASTER_PORT: 10.0.0.1:29500, from 1 of 3 nodes",
			"cannot connect to MASTER_PORT (10.0.0.1:29500): connection timed out [node2 node3]"},
	} {
		r := Of("check-x", len(c.nodes), c.nodes)
		if got := strings.Join(rows(r), "\n"); got != c.row {
			t.Errorf("%s: row %q, want %q", name, got, c.row)
		}
		var text string
		for _, p := range r.Problems {
			text += fmt.Sprint(p.Text, " ", p.Nodes)
		}
		if text != c.error {
			t.Errorf("%s: problem %q, want %q", name, text, c.error)
		}
	}
}

// One agent of each node that answers is tried, by one agent of each other node.
func TestTargets(t *testing.T) {
	nodes := linked(3, noOffset)
	nodes = append(nodes, agent(nodes[2], "2b"), agent(nodes[0], "0b"))
	for i, answers := range []string{":7", "", "10.0.0.3:7", "10.0.0.3:8", ":8"} {
		nodes[i].Answers, nodes[i].Rank = answers, (i+2)%5
	}
	targets := TargetsOf(nodes)
	for id, want := range map[string][]Target{
		"0": {{"2", "10.0.0.3:7"}}, "2": {{"0", ":7"}}, "1": nil, "2b": nil, "0b": nil,
	} {
		if got := targets.For(id); !slices.Equal(got, want) || targets.Rank0 != "2b" {
			t.Errorf("agent %s tries %v, want %v", id, got, want)
		}
	}
}

// The report has every connection, for programs.
func TestLinksAsJSON(t *testing.T) {
	ahead := func(node int) time.Duration { return time.Duration(node) * time.Second }
	members := block(linked(2, ahead), func(from, to int) bool { return from == 0 })
	text, err := json.Marshal(Of("check-x", 2, members))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Links []map[string]any `json:"links"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"from": "node1", "to": "node2", "error": "connection timed out"},
		{"from": "node2", "to": "node1", "round_trip_ms": 9., "clock_offset_ms": -1000.},
	}
	if !reflect.DeepEqual(got.Links, want) {
		t.Errorf("links %v\nwant %v", got.Links, want)
	}
}
