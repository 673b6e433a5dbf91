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
		got := Status([]status.Job{training(nodes)}, console.Destination{}, false)
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
				Job: "x", State: status.Joining, Seconds: 62, Tasks: 4, Joined: 2, Present: 3,
				Waiting: []status.Peer{{Host: "node2"}, {Host: "node1"}, {Host: "node2"}},
			},
			"job x: waiting for 1m2s: 3 of 4 nodes are there (node1, node2), 1 is missing\n",
		},
		{
			status.Job{
				Job: "4711.0", Name: "train", State: status.Joining, Tasks: 8, Present: 1, Launched: true,
				Waiting: []status.Peer{{Host: "node1"}},
			},
			"job train: waiting for 0s: 1 of 8 tasks is there (node1), 7 are missing\n",
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
		if got := Status([]status.Job{row.job}, console.Destination{}, false); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
	both := Status([]status.Job{{Job: "x", Text: "1"}, {Job: "y", Text: "2"}}, console.Destination{}, false)
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

// What is known to be wrong is above the table, the likely causes first.
func TestStatusFindings(t *testing.T) {
	absent, late, several, silent := training(1), training(1), training(1), training(1)
	for i := range absent.Ranks {
		absent.Ranks[i].Init, absent.Ranks[i].NotListening = new(false), i == 0
		several.Ranks[i].Init = new(i < 5)
		silent.Ranks[i].Output = new(float64(192 + i))
	}
	silent.Seconds, silent.Ranks[7].Output, silent.Ranks[7].AllOutput = 193, nil, true
	late.Ranks[5].Init = new(false)
	several.Ranks[2].State, several.Ranks[3].State = status.Stopped, status.Blocked
	several.Ranks[4].Traceback = &status.Traceback{Seconds: 9, Exception: "KeyError: 1"}
	several.Collectives = "rank 5 is behind"
	for name, c := range map[string]struct {
		job  status.Job
		want string
	}{
		"rank 0": {absent, "rank 0 (node1) has not reached init_process_group: it does not listen on " +
			"MASTER_PORT\n    yet\n"},
		"one rank": {late,
			"rank 5 (node1) has not reached init_process_group: the others wait there\n"},
		"several": {several,
			"rank 4 (node1) printed a traceback 9s ago and is still running: KeyError: 1\n" +
				"rank 2 (node1) is stopped by a signal or a debugger\n" +
				"ranks 5-7 (node1) have not reached init_process_group: the others wait there\n" +
				"NCCL: rank 5 is behind\n" +
				"rank 3 (node1) waits for a file system or a device that has not answered yet\n"},
		"silence": {silent,
			"no rank has written anything for 3m11s; rdzv stacks shows where each one is\n"},
	} {
		want := "job 4711.0: 8 ranks on 1 node, running for " + seconds(c.job.Seconds) + "\n\n" +
			c.want + "\nRANK  HOST"
		if got := Status([]status.Job{c.job}, console.Of(console.Plain, 24, 90), false); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got\n%s\nwant at first\n%s", name, got, want)
		}
	}
}

// The last lines of ranks have what is left of the width, and none if that is too little. -v adds
// the agents.
func TestStatusOfLastLines(t *testing.T) {
	j := training(1)
	j.Ranks[0].LastLine, j.Ranks[1].LastLine = "step 3\x1b[1m", strings.Repeat("x", 100)
	got := Status([]status.Job{j}, console.Of(console.Plain, 24, 90), true)
	for _, want := range []string{
		"CPU   AGENT  LAST LINE\n", " 100%  71     step 3\n", "xxxxx...\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %q in it", got, want)
		}
	}
	for line := range strings.Lines(got) {
		if n := utf8.RuneCountInString(line) - 1; n > 90 {
			t.Errorf("a line of %d columns: %q", n, line)
		}
	}
	if got := Status([]status.Job{j}, console.Of(console.Plain, 24, 60), false); strings.Contains(got, "LAST") {
		t.Errorf("got\n%s\nin 60 columns", got)
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
		"2 more ranks printed a traceback, too\nNCCL: all ranks"
	if got := Status([]status.Job{j}, console.Destination{}, false); !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant %q in it", got, want)
	}
}
