package tables

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/rdzv"
	"rdzv/rdzv/status"
)

// training is a job of so many nodes with 8 ranks each. The last rank of node2 sleeps outside of
// init_process_group, one is stopped, one has failed, and an agent does not answer.
func training(nodes int) status.Job {
	j := status.Job{
		Job: "4711.0", State: status.Running, Seconds: 192, Tasks: nodes, Joined: nodes,
		WorldSize: 8 * nodes, Nodes: nodes,
	}
	for i := range 8 * nodes {
		node := i / 8
		r := status.Rank{
			Rank: i, Host: fmt.Sprintf("node%d", node+1), PID: 4000 + i, AgentPID: 71,
			State: status.Alive, Seconds: 192 - float64(i)/100, Init: new(true),
			Output: new(float64(i % 8)), CPU: new(1 + float64(i%8)/100),
		}
		switch {
		case i == 15:
			r.Init, r.CPU, r.Output = new(false), new(0.004), new(190.0)
		case node == 1 && i == 12:
			r.State, r.CPU = status.Stopped, new(0.0)
		case node == 2 && i == 17:
			r = status.Rank{
				Rank: i, Host: r.Host, PID: r.PID, AgentPID: 71, State: status.Exited, Seconds: 0.4,
				ExitCode: new(137), Signal: rdzv.Signal(syscall.SIGKILL), AllOutput: true,
			}
		case node == 4:
			r.Output = nil
		case node == 3:
			r = status.Rank{Rank: i, Host: r.Host, AgentPID: 71, State: status.NoAnswer}
		}
		j.Ranks = append(j.Ranks, r)
	}
	return j
}

// The table is readable for 16 and for 64 ranks.
func TestStatus(t *testing.T) {
	for _, nodes := range []int{2, 8} {
		got := Status([]status.Job{training(nodes)}, console.PageWidth)
		file := fmt.Sprintf("testdata/status-%d-ranks.txt", 8*nodes)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s (-update writes it), got:\n%s", file, got)
		}
		for line := range strings.Lines(got) {
			if n := utf8.RuneCountInString(line) - 1; n > console.PageWidth {
				t.Errorf("a line of %d columns: %q", n, line)
			}
		}
	}
}

func TestStatusHeader(t *testing.T) {
	for _, row := range []struct {
		job  status.Job
		want string
	}{
		{
			status.Job{
				Job: "x", State: status.Joining, Seconds: 62, Tasks: 4, Joined: 3,
				Waiting: []status.Peer{{Host: "node2"}, {Host: "node1"}, {Host: "node2"}},
			},
			"job x: 3 of 4 agents joined, waiting for the others for 1m2s\nagents: node1, node2\n",
		},
		{
			status.Job{
				Job: "x\x1b[1m", State: status.Ending, Seconds: 2.9, WorldSize: 1, Nodes: 1,
				Ending: "rank 0 failed on node1: exit code 1",
			},
			`job x\x1b[1m: 1 rank on 1 node, ending for 2s: ` +
				"rank 0 failed on node1: exit code 1\n",
		},
		{
			status.Job{
				Job: "x", State: status.Restarting, Seconds: 4, WorldSize: 8, Nodes: 2, Attempt: 2,
				Restarts: 3,
			},
			"job x: 8 ranks on 2 nodes, restart 2 of 3, restarting for 4s\n",
		},
		{
			status.Job{
				Job: "x", State: status.Running, Seconds: 4, WorldSize: 8, Nodes: 2, Restarts: 3,
			},
			"job x: 8 ranks on 2 nodes, running for 4s\n",
		},
		{
			status.Job{Job: "x", State: status.Ending, Ending: "lost the store"},
			"job x: ending for 0s: lost the store\n",
		},
		{
			status.Job{Job: "x", Text: "lost the store"},
			"job x: no agent has answered: lost the store\n",
		},
	} {
		if got := Status([]status.Job{row.job}, console.PageWidth); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
	both := Status([]status.Job{{Job: "x", Text: "1"}, {Job: "y", Text: "2"}}, console.PageWidth)
	want := "job x: no agent has answered: 1\n\njob y: no agent has answered: 2\n"
	if both != want {
		t.Errorf("got %q, want %q", both, want)
	}
}

func TestSeconds(t *testing.T) {
	for s, want := range map[float64]string{
		0.9: "0s", 59.99: "59s", 60: "1m0s", 3599: "59m59s", 3600: "1h0m", 5*3600 + 182: "5h3m",
		86400: "1d0h", 3*86400 + 4*3600 + 59: "3d4h",
	} {
		if got := seconds(s); got != want {
			t.Errorf("%v s is %q, want %q", s, got, want)
		}
	}
}

// The table says that rank 0 is the one that is waited for.
func TestStatusOfAbsentRank0(t *testing.T) {
	j := training(1)
	for i := range j.Ranks {
		j.Ranks[i].Init, j.Ranks[i].Connecting = new(false), i > 1
	}
	want := "\nrank 0 (node1) does not listen on MASTER_PORT yet; 6 of 8 ranks are trying to connect\n"
	if got := Status([]status.Job{j}, console.PageWidth); !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant %q at the end", got, want)
	}
}

// Ranks that run although they have printed a traceback are named first, the earliest one first.
func TestStatusOfTracebacks(t *testing.T) {
	j := training(1)
	j.Collectives = "all ranks are in the same collective"
	for i, r := range j.Ranks[:7] {
		j.Ranks[i].Traceback = &status.Traceback{Seconds: float64(10 + r.Rank), Exception: "ValueError: \x1b"}
	}
	j.Ranks[6].ExitCode = new(1)
	want := "\nrank 5 (node1) printed a traceback 15s ago and is still running: ValueError: \\x1b\n" +
		"rank 4 (node1) printed a traceback 14s ago and is still running: ValueError: \\x1b\n" +
		"rank 3 (node1) printed a traceback 13s ago and is still running: ValueError: \\x1b\n" +
		"rank 2 (node1) printed a traceback 12s ago and is still running: ValueError: \\x1b\n" +
		"2 more ranks printed a traceback, too\n\nNCCL: all ranks"
	if got := Status([]status.Job{j}, console.PageWidth); !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant %q in it", got, want)
	}
}
