package tables

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/rdzv"
	"rdzv/rdzv/check"
)

var update = flag.Bool("update", false, "write the golden files")

// factsOf are those of a fixture of package node.
func factsOf(t *testing.T, name string) (facts []check.Fact) {
	t.Helper()
	file := filepath.Join("../../../../rdzv/agent/internal/node/testdata", name+".json")
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &facts)
	}
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

// manyNodes are n nodes with 8 GPUs each, of which, from 64 on, three differ: one is degraded, one
// has another python and a wrong clock, and one lacks the script and a variable, and cannot be
// reached.
func manyNodes(t *testing.T, n int) (members []check.Node) {
	gpu, degraded := factsOf(t, "gpu"), factsOf(t, "degraded")
	for i := range n {
		m := check.Node{
			Member: rdzv.Member{
				ID: fmt.Sprint(i), Node: fmt.Sprint(i), Host: fmt.Sprintf("node%d", i+1),
				Tasks: rdzv.Unplaced(8),
				Facts: rdzv.Facts{Variables: map[string]string{"NCCL_IB_TC": "106",
					"NCCL_DEBUG": "WARN"}},
			},
			NodeFacts: []check.Fact{
				{Name: "address", Value: fmt.Sprintf("10.0.4.%d", i+1), Own: true},
				{Name: "interface", Value: "ib0 (used to reach the other nodes)"},
			},
			Measured: check.Measured{
				Links:  linksFrom(i, n),
				Master: &check.Connection{To: "0", Addr: "10.0.4.1:29500"},
			},
		}
		facts, python := gpu, "3.11"
		switch {
		case n < 64:
		case i == 16:
			facts = degraded
		case i == 40:
			python = "3.9"
			m.Measured.Master.Error = "connection timed out"
		case i == 63:
			m.Problems = []rdzv.Problem{{
				Kind: rdzv.ProgramMissing, Text: `cannot start: script "train.py" is missing`,
				Hint: "copy it to the same path on all nodes",
			}}
			delete(m.Facts.Variables, "NCCL_IB_TC")
		}
		m.NodeFacts = append(m.NodeFacts, facts...)
		m.Facts.Known = []rdzv.Fact{
			{Name: "python", Value: python}, {Name: "torch", Value: "2.6.0+cu124"},
		}
		members = append(members, m)
	}
	return members
}

// linksFrom are links of 0.12 to 0.22 ms.
func linksFrom(node, nodes int) (links []check.Connection) {
	for _, to := range check.Peers(node, nodes) {
		l := check.Connection{
			To: fmt.Sprint(to), Addr: fmt.Sprintf("10.0.4.%d:40000", to+1),
			RoundTrip: time.Duration(120+(7*node+13*to)%100) * time.Microsecond,
			Offset:    time.Duration(node-to) * time.Microsecond,
		}
		switch {
		case to == 63:
			l = check.Connection{To: l.To, Addr: l.Addr, Error: "connection timed out"}
		case node == 40:
			l.Offset = -200 * time.Second
		}
		links = append(links, l)
	}
	return links
}

// The table is readable for 2 and for 64 nodes.
func TestCheck(t *testing.T) {
	for _, n := range []int{2, 64} {
		r := check.Of("check-train", n, manyNodes(t, n))
		got := Check(r, console.Destination{})
		file := fmt.Sprintf("testdata/check-%d-nodes.txt", n)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || string(want) != got {
			t.Errorf("%d nodes: %s\nwant %s (%v)", n, got, want, err)
		}
		if lines := strings.Split(got, "\n"); slices.ContainsFunc(lines, func(line string) bool {
			return utf8.RuneCountInString(line) > console.PageWidth
		}) {
			t.Errorf("%d nodes: a line has more than %d columns", n, console.PageWidth)
		}
	}
}

// Not all agents have joined, names are odd, texts control the terminal.
func TestCheckOdd(t *testing.T) {
	long := strings.Repeat("/very/long", 20)
	members := []check.Node{
		{Member: rdzv.Member{ID: "1", Host: "a", PID: 7, Tasks: rdzv.Unplaced(1)},
			NodeFacts: []check.Fact{{Name: "dir", Value: long}}},
		{Member: rdzv.Member{ID: "2", Host: "a", PID: 8, Tasks: rdzv.Unplaced(1)},
			NodeFacts: []check.Fact{
				{Name: "dir", Value: "/\x1b[31m"}, {Name: strings.Repeat("name ", 20), Value: "x"},
				{Name: "script src/train/main.py", Value: "x"},
			}},
	}
	r := check.Of("check-x", 3, members)
	v := rdzv.Verdict{Kind: rdzv.Unready, Problems: []rdzv.NodeProblem{
		{Problem: rdzv.Problem{Text: "cannot assign ranks"}},
		{Problem: rdzv.Problem{Text: "one", Hint: "wait"}},
		{Problem: rdzv.Problem{Text: "two", Hint: "wait"}},
	}}
	r.AddProblems(&v)
	got := Check(r, console.Destination{})
	for _, want := range []string{
		"2 nodes: a, a (pid 8), 2 workers\nonly 2 of 3 agents joined\n",
		"\nerror: cannot assign ranks\n\nerror: one\n\nerror: two\n    hint: wait\n",
		"* the nodes differ\n", "on a (pid 8)\n", "  src/train/main.py\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table is\n%s\nwant %q in it", got, want)
		}
	}
	for line := range strings.Lines(got) {
		if utf8.RuneCountInString(line) > console.PageWidth+1 || strings.Contains(line, "\x1b") {
			t.Errorf("line %q", line)
		}
	}
}
