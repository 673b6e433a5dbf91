package tables

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/rdzv/stacks"
	"rdzv/rdzv/status"
)

// hanging are the workers of a job of n ranks, 8 of them on each host or 4 of 8: those of rank 2
// sleep, the others wait for it. With Python, they are known by py-spy.
func hanging(n, perHost int, python bool) (nodes []stacks.Node) {
	for rank := range n {
		if rank%perHost == 0 {
			host := len(nodes) + 1
			nodes = append(nodes, stacks.Node{
				Host: fmt.Sprintf("node%d", host), Addr: fmt.Sprintf("10.0.0.%d", host), Ranks: n,
			})
		}
		w := stacks.Worker{
			Rank: rank, PID: 4000 + 10*rank, CPU: rank % 2, Problem: stacks.NotInstalled,
			Main: stacks.Thread{
				Does: "waiting for another thread (futex)", State: "S", WChan: "futex_wait_queue",
			},
			Others: []stacks.Count{
				{N: 12, Does: "waiting for another thread (futex)"},
				{N: 1, Does: "waiting for events on a TCP connection (epoll_wait)"},
			},
		}
		stack := []string{
			"all_reduce (torch/distributed/distributed_c10d.py:1536)", "main (train.py:31)",
			"<module> (train.py:40)",
		}
		switch rank {
		case 2:
			w.Main.Does, w.Main.WChan = "sleeping (clock_nanosleep)", "hrtimer_nanosleep"
			stack = []string{"__getitem__ (train.py:12)", "fetch (torch/utils/data/_utils/fetch.py:51)",
				"main (train.py:29)", "<module> (train.py:40)"}
		case 40:
			w.Main = stacks.Thread{
				Does: "receiving from a TCP connection (recvfrom)", State: "S", Object: "10.0.0.1:4711",
				WChan: "sk_wait_data",
			}
		}
		if python {
			w.Problem, w.Python, w.At = "", stack, stack[0][strings.Index(stack[0], "(")+1:len(stack[0])-1]
			w.Others = []stacks.Count{{N: 1, Does: "wait (threading.py:320)"}}
		}
		nodes[len(nodes)-1].Workers = append(nodes[len(nodes)-1].Workers, w)
	}
	return nodes
}

// The rank for which the others wait is in the first line, for 8 and for 64 ranks, with py-spy and
// without.
func TestStacks(t *testing.T) {
	for _, c := range []struct {
		name   string
		report stacks.Report
	}{
		{"8-ranks", stacks.Of("train", hanging(8, 4, false))},
		{"8-ranks-python", stacks.Of("train", hanging(8, 4, true))},
		{"64-ranks", stacks.Of("train", hanging(64, 8, false))},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, file := Stacks([]stacks.Report{c.report}, console.Destination{}), "testdata/stacks-"+c.name+".txt"
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || string(want) != got {
				t.Errorf("%s\nwant %s (%v)", got, want, err)
			}
			checkLines(t, got)
		})
	}
}

// checkLines checks that a table fits, and does not control the terminal.
func checkLines(t *testing.T, table string) {
	t.Helper()
	if lines := strings.Split(table, "\n"); slices.ContainsFunc(lines, func(line string) bool {
		return utf8.RuneCountInString(line) > console.PageWidth || strings.Contains(line, "\x1b")
	}) {
		t.Errorf("a line of %q has more than %d columns, or an escape sequence", table, console.PageWidth)
	}
}

// A rank before init is not where those are that wait in it, although all sleep in the same way.
func TestStacksBeforeInit(t *testing.T) {
	node := stacks.Node{Host: "node1", Ranks: 2}
	for rank, reached := range []bool{true, false} {
		node.Workers = append(node.Workers, stacks.Worker{
			Rank: rank, Init: &reached, Main: stacks.Thread{Does: "sleeping (clock_nanosleep)"},
		})
	}
	got := Stacks([]stacks.Report{stacks.Of("train", []stacks.Node{node})}, console.Destination{})
	for _, want := range []string{
		"job train: rank 1 (node1) has not reached init_process_group: the others wait there: sleeping",
		"\nrank 1 (node1): sleeping", "\nrank 0 (node1): sleeping",
	} {
		if !strings.Contains(strings.Join(strings.Fields(got), " "), strings.TrimPrefix(want, "\n")) {
			t.Errorf("the table is\n%s\nwant %q in it", got, want)
		}
	}
}

// The table of a job in which all ranks do something else is bounded, and names no rank.
func TestStacksOdd(t *testing.T) {
	node := stacks.Node{Ranks: 100}
	for rank := range 100 {
		node.Workers = append(node.Workers, stacks.Worker{
			Rank: rank, Main: stacks.Thread{Does: fmt.Sprintf("\x1b%d", rank)},
		})
	}
	got := Stacks([]stacks.Report{stacks.Of("train", []stacks.Node{node})}, console.Destination{})
	for _, want := range []string{
		"100 ranks at 100 different places\n", "\n84 more ranks at other places\n", `\x1b15`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table is\n%s\nwant %q in it", got, want)
		}
	}
	checkLines(t, got)
	alike := []stacks.Node{{Host: "node1", Workers: []stacks.Worker{{Rank: 0}, {Rank: 1}}}}
	for ranks, want := range []string{
		1: "1 rank\n", 2: "all 2 ranks are at the same place\n",
		3: "2 of 3 ranks are at the same place\n",
	} {
		alike[0].Ranks, alike[0].Workers = ranks, alike[0].Workers[:min(ranks, 2)]
		if ranks == 0 {
			want = "no workers are running\n"
		}
		got := Stacks([]stacks.Report{stacks.Of("train", alike)}, console.Destination{})
		if !strings.HasPrefix(got, "job train: "+want) {
			t.Errorf("the table is\n%s\nwant %q at its beginning", got, want)
		}
		alike[0].Workers = []stacks.Worker{{Rank: 0}, {Rank: 1}}
	}
}

// What NCCL says is the first line of rdzv stacks, a column of rdzv status and a line below it.
func TestCollectives(t *testing.T) {
	const behind = "rank 5 is at all_reduce 6649, the other 15 at 6650"
	nodes := hanging(8, 4, false)
	nodes[1].Collectives = behind
	text := Stacks([]stacks.Report{stacks.Of("train", nodes)}, console.Destination{})
	if !strings.HasPrefix(text, "NCCL: "+behind+"\njob train: ") {
		t.Errorf("rdzv stacks prints\n%s", text)
	}
	nodes[1].Collectives, nodes[0].NCCL = "", "NCCL version 2.24.3\n\n  Rank 5\x1b[1m has launched up to operation 6649"
	text = Stacks([]stacks.Report{stacks.Of("train", nodes)}, console.Destination{})
	const older = "\nNCCL's report:\n    NCCL version 2.24.3\n\n      Rank 5\\x1b[1m has launched up to operation 6649\n"
	if !strings.HasPrefix(text, "job train: ") || !strings.HasSuffix(text, older) {
		t.Errorf("with an older NCCL rdzv stacks prints\n%s", text)
	}
	j := training(2)
	if text := Status([]status.Job{j}, console.Destination{}, false); strings.Contains(text, "COLL") {
		t.Errorf("without NCCL rdzv status prints\n%s", text)
	}
	j.Collectives = behind
	for i := range j.Ranks {
		if i != 3 {
			j.Ranks[i].Collectives = new(int64(6650))
		}
	}
	j.Ranks[5].Collectives = new(int64(6649))
	text = Status([]status.Job{j}, console.Destination{}, false)
	for _, want := range []string{"  CPU   COLL\n", "  6649\n", "  6650\n", "  -\n", "\nNCCL: " + behind + "\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("rdzv status prints\n%s\nwant %q in it", text, want)
		}
	}
}
