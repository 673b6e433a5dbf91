package announce

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/meet"
)

// A log that is given up is reported, even with -q, and at the end what it lacks.
func TestLogLost(t *testing.T) {
	var out strings.Builder
	own := console.To(&out, console.Destination{})
	own.Set(true, false)
	c := New(own)
	lost := agent.LogLost{Rank: 3, File: "logs/rank-00003.log", Text: "no space left on device"}
	c.Event(lost)
	lost.Bytes = 4096
	c.Event(lost)
	const want = `rdzv: cannot write "logs/rank-00003.log": no space left on device: ` +
		"the output of rank 3 is no longer kept\n" +
		`rdzv: 4096 bytes of the output of rank 3 were dropped from "logs/rank-00003.log"` + "\n"
	if out.String() != want {
		t.Errorf("wrote %q\nwant %q", &out, want)
	}
}

// While an agent searches, a hint is written once; at the timeout there is one line about it.
func TestSearchTimeout(t *testing.T) {
	var out strings.Builder
	own := console.To(&out, console.Destination{})
	c := New(own)
	search := meet.Searching{Unresolved: []string{"nod1"}, Hint: "check the name"}
	for _, waited := range []time.Duration{time.Second, 5 * time.Second} {
		search.Waited = waited
		c.Event(search)
	}
	own.Fail(&agent.JoinTimeoutError{
		Tasks: 2, Timeout: 5 * time.Second, Search: &meet.NotFoundError{Searching: search},
	})
	const want = `rdzv: "nod1" does not resolve (1s)
rdzv: hint: check the name
rdzv: "nod1" does not resolve (5s)
rdzv: timed out after 5s (--join-timeout): "nod1" does not resolve
`
	if out.String() != want {
		t.Errorf("wrote %q\nwant %q", &out, want)
	}
}

// The command for another node has no --node-rank of this one.
func TestCommandElsewhere(t *testing.T) {
	program := []string{"my.py", "--node-rank", "3"}
	for flags, want := range map[string]string{
		"--node-rank 0 --":           "rdzv exec --node-rank N -- my.py --node-rank 3",
		"--node_rank=0 --nodes 2":    "rdzv exec --node-rank=N --nodes 2 my.py --node-rank 3",
		"--nodes 2 --store node1 --": "rdzv exec --nodes 2 --store node1 -- my.py --node-rank 3",
	} {
		line, ranked := command{"exec", strings.Fields(flags), program}.elsewhere()
		if line != want || ranked != strings.Contains(want, "N") {
			t.Errorf("%q: %q, %t, want %q", flags, line, ranked, want)
		}
	}
}

// The lines of events that occur while an agent searches for the others.
func TestSearchEvents(t *testing.T) {
	addr := netip.MustParseAddr("10.0.0.6")
	for _, test := range []struct {
		event agent.Event
		want  string
	}{
		{
			agent.NoPeerYet{Waited: rdzv.Seconds(3 * time.Second), Store: addr,
				JoinLine: "RDZV_JOIN=10.0.0.6:1/KEY", Secret: true},
			"rdzv: no other agent has connected after 3s\n" +
				"rdzv: hint: on each node that cannot join, in the same directory, start this; it contains the " +
				"key of the job:\nRDZV_JOIN=10.0.0.6:1/KEY rdzv exec --nodes 2 -- 'my train.py'\n",
		},
		{
			agent.NoPeerYet{Waited: rdzv.Seconds(3 * time.Second), Explained: true, JoinLine: "RDZV_JOIN=10.0.0.6:1/KEY", Secret: true},
			"rdzv: hint: on each node that cannot join, in the same directory, start this; it contains the " +
				"key of the job:\nRDZV_JOIN=10.0.0.6:1/KEY rdzv exec --nodes 2 -- 'my train.py'\n",
		},
		{
			agent.NoPeerYet{Waited: rdzv.Seconds(3 * time.Second), Hint: "--store node1"},
			"rdzv: no other agent has connected after 3s\nrdzv: hint: --store node1\n",
		},
		{
			agent.DifferentStore{Addr: addr},
			"rdzv: 10.0.0.6 hosts another store for the same command; " +
				"for one job give all nodes the same --store\n",
		},
		{
			agent.NoPeerYet{Waited: rdzv.Seconds(3 * time.Second), Store: addr},
			"rdzv: no other agent has connected after 3s\n" +
				"rdzv: hint: if the other nodes cannot find this one, start every node with " +
				"--store 10.0.0.6\n",
		},
		{agent.NoPeerYet{Waited: rdzv.Seconds(3 * time.Second)}, "rdzv: no other agent has connected after 3s\n"},
		{
			agent.NoPeerYet{Waited: rdzv.Seconds(3 * time.Second), NoBeacon: true},
			"rdzv: no other agent has connected after 3s, and no multicast beacon was received\n",
		},
		{
			agent.Searching{
				Waited: time.Second, Unresolved: []string{"nod1"}, Hint: "check the name",
			},
			"rdzv: \"nod1\" does not resolve (1s)\nrdzv: hint: check the name\n",
		},
		{
			agent.Searching{
				Waited: time.Second, Hint: "is it running?",
				Tried: []meet.Answer{{Addr: netip.AddrPortFrom(addr, 29700)}},
			},
			"rdzv: no store at 10.0.0.6 port 29700: no answer yet (1s)\n",
		},
		{
			agent.DifferentToken{Host: "node2", Addr: addr, Hint: "copy it"},
			"rdzv: node2 (10.0.0.6) has a different token\nrdzv: hint: copy it\n",
		},
		{
			agent.DifferentCommand{Addr: addr},
			"rdzv: 10.0.0.6 runs a different command or --nodes; " +
				"if both belong to one job, give them the same --job NAME\n",
		},
		{
			agent.RanksMissing{Ranks: 4},
			"rdzv: waiting for all 4 ranks to start (Hydra does not report which are missing)\n",
		},
		{
			agent.NoMulticast{Text: "network is down"},
			"rdzv: cannot search for the other nodes by multicast: network is down\n",
		},
	} {
		var out strings.Builder
		c := New(console.To(&out, console.Destination{}))
		c.SetCommand("exec", []string{"--nodes", "2", "--"}, []string{"my train.py"})
		if c.Event(test.event); out.String() != test.want {
			t.Errorf("%+v: wrote %q\nwant %q", test.event, &out, test.want)
		}
	}
}

// Of a failure an agent writes the report alone, or before it one line if the agents do not settle
// soon, or the line alone if nothing else is known. An agent that does not announce it is silent.
func TestFailureEvents(t *testing.T) {
	verdict := &rdzv.Verdict{Kind: rdzv.Failed, Host: "node1", PID: 71, Rank: 2, Code: 1,
		Text: "no data"}
	own := agent.JobEnded{Verdict: verdict, Announce: true, ReportFollows: true}
	other := agent.JobEnded{Verdict: verdict, Announce: true}
	report := agent.FailureReported{Failure: agent.Failure{
		Program: []string{"a b"}, Rank: 2, WorldSize: 4, Host: "node1", PID: 71, Code: 1,
	}}
	alone, terminal, killed := report, report, report
	alone.WorldSize, terminal.OnTerminal = 1, true
	killed.Signal, killed.OnTerminal, killed.Hint = 9, true, "see dmesg"
	const line = "rdzv: rank 2 failed first: exit 1 after 0.00s on node1 (local rank 0, pid 71): " +
		"no data\n"
	const head = `rdzv: rank 2 of 4 failed first
rdzv:   program  'a b'
rdzv:   where    node1, local rank 0, pid 71
`
	const end = "rdzv:   how      exit 1 after 0.00s\n"
	const text = head + end
	for name, test := range map[string]struct {
		events []agent.Event
		want   string
	}{
		"report": {[]agent.Event{own, report}, text},
		"terminal": {[]agent.Event{own, terminal}, head + "rdzv:   its stderr is the terminal, which " +
			"rdzv does not read; --tag or --log-dir DIR puts the exception here\n" + end},
		"killed": {
			[]agent.Event{own, killed},
			strings.Replace(text, "exit 1", "killed by SIGKILL", 1) + "rdzv: hint: see dmesg\n",
		},
		"late report": {[]agent.Event{own, agent.Settling{}, report}, line + text},
		"one worker":  {[]agent.Event{own, alone}, line},
		"other agent": {[]agent.Event{other, agent.Settling{}}, line},
		"silent":      {[]agent.Event{agent.JobEnded{Verdict: verdict}}, ""},
	} {
		var out strings.Builder
		c := New(console.To(&out, console.Destination{}))
		for _, e := range test.events {
			c.Event(e)
		}
		if out.String() != test.want {
			t.Errorf("%s: wrote %q\nwant %q", name, &out, test.want)
		}
	}
}

// A report ends with the exception. Of a traceback that is shown above lines of other ranks it repeats
// the end; failures that others have suffered because of it are counted.
func TestReport(t *testing.T) {
	var traced []string
	for n := range 12 {
		traced = append(traced, fmt.Sprint("line ", n))
	}
	failed := agent.Failure{
		Program: []string{"a"}, Rank: 2, WorldSize: 8, Host: "node1", PID: 71, Code: 1,
		Message: "E: x", Stderr: traced, Log: "logs/2.log", Disconnected: 3,
		Others: []rdzv.FailedWorker{
			{Host: "node1", Worker: rdzv.Worker{Rank: 3, Code: 1, Text: "reset", Disconnected: true}},
			{Host: "node2", Worker: rdzv.Worker{Rank: 4, Code: 9, Text: "other"}},
		},
	}
	const head = "rank 2 of 8 failed first\n"
	const where = "  where    node1, local rank 0, pid 71\n  log      logs/2.log\n" +
		"  others   rank 4 on node2 also failed: exit 9: other\n"
	const counted = "  others   3 other ranks lost their connection to it\n"
	const end = "  how      exit 1 after 0.00s\n  message  E: x\n"
	const program, above = "  program  a\n", "  its stderr is above\n"
	lines := func(lines ...string) string {
		return "  last lines of stderr:\n  | " + strings.Join(lines, "\n  | ") + "\n"
	}
	mixed := lines(append([]string{"..."}, traced[2:]...)...)
	for name, test := range map[string]struct {
		change func(*agent.Failure)
		want   string
	}{
		"not shown": {func(*agent.Failure) {}, head + program + where + counted + lines(traced...) + end},
		"above": {func(f *agent.Failure) { f.Shown = true },
			head + program + where + counted + above + end},
		"stdout, too": {func(f *agent.Failure) { f.Shown, f.Joined = true, true },
			head + program + where + counted + "  its output is above\n" + end},
		"mixed": {func(f *agent.Failure) { f.Shown, f.Mixed = true, true },
			head + program + where + counted + mixed + end},
		"of another node": {func(f *agent.Failure) { f.Elsewhere = true },
			head + where + counted + lines(traced...) + end},
		"consequence": {func(f *agent.Failure) { f.Shown, f.Consequence, f.Disconnected = true, true, 1 },
			head + program + where +
				"  others   1 other rank lost its connection to another one, too\n" + above + end},
	} {
		f := failed
		test.change(&f)
		if got := f.Report("", f.Shown); got != test.want {
			t.Errorf("%s: %s\nwant %s", name, got, test.want)
		}
	}
}

func TestEndedBySignal(t *testing.T) {
	verdict := &rdzv.Verdict{Kind: rdzv.Ended, Host: "node1", PID: 71, Signal: rdzv.Signal(syscall.SIGTERM)}
	for host, want := range map[string]string{
		"node2": "node1 received SIGTERM: the job is stopped",
		"": "node1 received SIGTERM before all agents had joined: " +
			"the job is stopped",
	} {
		e := agent.JobEnded{Verdict: verdict, StoreHost: host, Agreed: host != ""}
		if got := e.String(); got != want {
			t.Errorf("store on %q: %q, want %q", host, got, want)
		}
	}
	const want = "received SIGTERM before the job started"
	if got := (&agent.SignalError{Signal: syscall.SIGTERM}).Error(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The start line tells where the ranks are, and fits into 100 columns on any number of nodes.
func TestStartLine(t *testing.T) {
	named := func(n int, host string) (nodes []rdzv.NodeRanks) {
		for i := range n {
			if n <= 8 || i < 2 || i == n-1 {
				ranks := fmt.Sprintf("%d-%d", 8*i, 8*i+7)
				nodes = append(nodes, rdzv.NodeRanks{Host: fmt.Sprint(host, i+1), Ranks: ranks})
			}
		}
		return nodes
	}
	for _, test := range []struct {
		nodes      int
		host, addr string
		want       string
	}{
		{1, "node", "127.0.0.1", ""},
		{2, "node", "10.0.0.5",
			"rdzv: 16 ranks on 2 nodes: node1 0-7, node2 8-15; rank 0 at 10.0.0.5\n"},
		{3, strings.Repeat("long", 8), "10.0.0.5",
			"rdzv: 24 ranks on 3 nodes; rank 0 at 10.0.0.5\n"},
		{4, "compute-node-of-", "10.0.0.5",
			"rdzv: 32 ranks on 4 nodes: compute-node-of-1 0-7, ..., compute-node-of-4 24-31; " +
				"rank 0 at 10.0.0.5\n"},
		{1000, "node", "10.0.3.232",
			"rdzv: 8000 ranks on 1000 nodes: node1 0-7, node2 8-15, ..., node1000 7992-7999; " +
				"rank 0 at 10.0.3.232\n"},
		{1000, "node", "10.100.100.105",
			"rdzv: 8000 ranks on 1000 nodes: node1 0-7, ..., node1000 7992-7999; rank 0 at " +
				"10.100.100.105\n"},
	} {
		w := rdzv.World{Size: 8 * test.nodes, Nodes: test.nodes,
			Layout: named(test.nodes, test.host), MasterAddr: test.addr}
		for rank, want := range map[int]string{0: test.want, 8: ""} {
			var out strings.Builder
			w.Seat.Tasks = []rdzv.SeatTask{{Rank: rank, Slots: 8}}
			c := New(console.To(&out, console.Destination{}))
			if c.Event(agent.WorldAgreed{World: w}); out.String() != want {
				t.Errorf("rank %d of %d nodes: wrote %q\nwant %q", rank, test.nodes, &out, want)
			}
			if len(out.String()) > 101 {
				t.Errorf("the line %q has more than 100 columns", &out)
			}
		}
	}
}

// What is written while ranks are missing: the hint once, with the process that runs Python. The
// lines are of their own on a terminal too.
func TestInitProgress(t *testing.T) {
	missing := rdzv.InitProgress{
		Ranks: 8, Reached: 7, Waited: rdzv.Seconds(10 * time.Second), Host: "node2",
		Missing: []rdzv.NodeRanks{{Host: "node2", Ranks: "5"}}, First: new(5),
	}
	inspectable, later := missing, missing
	complete := rdzv.InitProgress{Ranks: 8, Reached: 8, Waited: rdzv.Seconds(70 * time.Second)}
	inspectable.Python, later.Python, later.Waited = 71, 71, rdzv.Seconds(time.Minute)
	const line = "rdzv: rank 5 (node2) has not reached init_process_group; " +
		"7 of 8 ranks have been waiting for %s\n"
	const hint = "rdzv: hint: rdzv stacks, on any node of the job, shows where rank 5 is"
	const process = " (pid 71 on node2)"
	const end = "rdzv: all 8 ranks have reached init_process_group by now, 1m10s after rank 0 did\n"
	for _, test := range []struct {
		to       console.Kind
		quiet    bool
		progress []rdzv.InitProgress
		want     string
	}{
		{console.Log, false, []rdzv.InitProgress{missing}, fmt.Sprintf(line, "10s") + hint + "\n"},
		{
			console.Log, false, []rdzv.InitProgress{inspectable, later, complete},
			fmt.Sprintf(line, "10s") + hint + process + "\n" + fmt.Sprintf(line, "1m0s") + end,
		},
		{console.Uncoloured, false, []rdzv.InitProgress{inspectable}, fmt.Sprintf(line, "10s") + hint + process + "\n"},
		{console.Log, true, []rdzv.InitProgress{inspectable, complete}, ""},
	} {
		var out strings.Builder
		own := console.To(&out, console.Of(test.to, 0, 0))
		own.Set(test.quiet, false)
		a := New(own)
		for _, p := range test.progress {
			a.Event(agent.InitProgress{InitProgress: p})
		}
		if out.String() != test.want {
			t.Errorf("wrote %q\nwant %q", &out, test.want)
		}
	}
}

func TestReportWithoutColours(t *testing.T) {
	var out strings.Builder
	n := ending{console: console.To(&out, console.Destination{})}
	n.failureReported(agent.Failure{
		WorldSize: 2, PID: 1, Message: "\x1b[31mValueError\x1b[m: \x1b[2J",
		Stderr: []string{"\x1b[1mbold\a"},
	})
	for _, want := range []string{`message  ValueError: \x1b[2J` + "\n", `| bold\a` + "\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("wrote %q, want %q in it", out.String(), want)
		}
	}
}
