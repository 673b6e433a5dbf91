package announce

import (
	"strings"
	"testing"
	"time"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/restart"
)

// Each attempt that fails has one line, also if the workers need some time to end.
func TestRestartLines(t *testing.T) {
	v := &rdzv.Verdict{
		Kind: rdzv.Failed, Rank: 2, LocalRank: 1, Host: "node1", PID: 71, Code: 1,
		RanFor: rdzv.Seconds(3 * time.Second), Text: "ValueError: x",
	}
	const line = "rdzv: rank 2 failed first: exit 1 after 3.0s on node1 (local rank 1, pid 71): " +
		"ValueError: x"
	const slowly = line + "\nrdzv: restarting all workers (restart 1 of 3)\n"
	failed := agent.AttemptFailed{Verdict: v, Announce: true}
	first := agent.Restarting{Restart: rdzv.Restart{Attempt: 1}, MaxRestarts: 3, Announce: true,
		JoinTimeout: 10 * time.Minute}
	second := first
	second.Restart = rdzv.Restart{Attempt: 2, Delay: rdzv.Seconds(time.Second)}
	ended := agent.JobEnded{Verdict: v, Announce: true}
	own := agent.JobEnded{Verdict: v, Announce: true, Own: true, ReportFollows: true}
	report := agent.FailureReported{Failure: agent.Failure{
		WorldSize: 1, PID: 71, Code: 1, Attempt: 3, NoRestart: restart.Exhausted,
	}}
	const last = "rdzv: not restarted: this was the last of 4 attempts (--max-restarts 3)\n"
	gone := &rdzv.Verdict{Kind: rdzv.Lost, Rank: 4, Ranks: "4-7", Host: "node2", PID: 72}
	lost := agent.AttemptFailed{Verdict: gone, Announce: true}
	unsure := agent.AttemptFailed{Verdict: v, Announce: true, MayBeConsequence: true}
	const unsureLine = "rdzv: rank 2 failed: exit 1 after 3.0s on node1 (local rank 1, pid 71): " +
		"ValueError: x; waiting to see whether an agent was lost"
	const lostLine = "rdzv: lost the agent of ranks 4-7 (pid 72 on node2): it disconnected unexpectedly"
	vacant := first
	vacant.Vacant = []rdzv.NodeRanks{{Host: "node2", Ranks: "4-7"}, {Host: "node3", Ranks: "8"}}
	world := func(announce bool, host string) agent.WorldAgreed {
		w := agent.WorldAgreed{Announce: announce, World: rdzv.World{Attempt: 1, MaxRestarts: 3}}
		w.Replaced = []rdzv.Replaced{{Ranks: "4-7", Host: host, Lost: "node2"}}
		return w
	}
	fewer := first
	fewer.Missing = 2
	elastic := agent.WorldAgreed{Announce: true, World: rdzv.World{
		Attempt: 1, MaxRestarts: 3, MaxTasks: 4, Size: 4, Nodes: 2, MasterAddr: "10.0.0.1",
		Layout: []rdzv.NodeRanks{{Host: "node1", Ranks: "0-1"}, {Host: "node3", Ranks: "2-3"}},
		Seat:   rdzv.Seat{Tasks: []rdzv.SeatTask{{Slots: 2}}},
	}}
	late := elastic
	late.Seat = rdzv.Seat{Spare: true}
	leaves := agent.AttemptFailed{Announce: true, Verdict: &rdzv.Verdict{
		Kind: rdzv.Ended, Host: "node2", PID: 72, Signal: 15, Withdrawn: true,
	}}
	const leavesLine = "rdzv: node2 leaves the job: received SIGTERM"
	left := first
	left.Withdrawn = true
	const stopped = "rdzv: node2 received SIGTERM: the job is stopped\n"
	stays := agent.JobEnded{Verdict: leaves.Verdict, Announce: true, Agreed: true}
	for name, test := range map[string]struct {
		events []agent.Event
		want   string
	}{
		"fewer nodes": {
			[]agent.Event{lost, first, elastic}, lostLine + "; restarting all workers (restart 1 of 3)\n" +
				"rdzv: 4 ranks on 2 nodes: node1 0-1, node3 2-3; rank 0 at 10.0.0.1 (restart 1 of 3)\n",
		},
		"too few nodes": {
			[]agent.Event{lost, fewer},
			lostLine + "; waiting up to 10m0s for 2 more nodes (restart 1 of 3)\n" +
				"rdzv: hint: start the same command on other nodes\n",
		},
		"a late node": {
			[]agent.Event{late},
			"rdzv: waiting for the next attempt: the job already runs on 2 nodes\n",
		},
		"leaves":          {[]agent.Event{leaves, first}, leavesLine + "; restarting all workers (restart 1 of 3)\n"},
		"this one leaves": {[]agent.Event{leaves, left}, leavesLine + "; the job goes on without this node\n"},
		"this one leaves, slowly": {[]agent.Event{leaves, agent.Settling{}, left},
			leavesLine + "\nrdzv: the job goes on without this node\n"},
		"leaves, but nobody takes its place": {[]agent.Event{leaves, stays}, stopped},
		"leaves, but nobody takes its place, slowly": {[]agent.Event{leaves, agent.Settling{}, stays},
			leavesLine + "\n" + stopped},
		"a spare": {
			[]agent.Event{lost, first, world(true, "node5")},
			lostLine + "; restarting all workers (restart 1 of 3)\n" +
				"rdzv: node5 takes over ranks 4-7 of node2 (restart 1 of 3)\n",
		},
		"another agent announces the spare": {[]agent.Event{world(false, "node5")}, ""},
		"vacancies": {
			[]agent.Event{lost, vacant, world(true, "node2")},
			lostLine + "; waiting up to 10m0s for an agent in place of node2 (ranks 4-7), node3 (rank 8) " +
				"(restart 1 of 3)\nrdzv: hint: start it again with the same command, there or on another node\n" +
				"rdzv: node2 runs ranks 4-7 again (restart 1 of 3)\n",
		},
		"no replacement": {
			[]agent.Event{lost, agent.JobEnded{Verdict: gone, Announce: true, Hint: "x"}},
			lostLine + "\nrdzv: hint: x\n",
		},
		"no replacement, slowly": {
			[]agent.Event{lost, agent.Settling{}, agent.JobEnded{Verdict: gone, Announce: true, Hint: "x"}},
			lostLine + "\nrdzv: hint: x\n",
		},
		"at once":      {[]agent.Event{failed, first}, line + "; restarting all workers (restart 1 of 3)\n"},
		"with a delay": {[]agent.Event{failed, second}, line + "; restarting all workers in 1s (restart 2 of 3)\n"},
		"slowly":       {[]agent.Event{failed, agent.Settling{}, first}, slowly},
		"another agent announces": {
			[]agent.Event{agent.AttemptFailed{Verdict: v}, agent.Restarting{Restart: first.Restart, MaxRestarts: 3}}, "",
		},
		"no restart":           {[]agent.Event{failed, ended}, line + "\n"},
		"may be a consequence": {[]agent.Event{unsure, ended}, line + "\n"},
		"may be a consequence, slowly": {[]agent.Event{unsure, agent.Settling{}, ended},
			unsureLine + "\n"},
		"is a consequence": {[]agent.Event{unsure, lost, vacant}, lostLine + "; waiting up to 10m0s for an " +
			"agent in place of node2 (ranks 4-7), node3 (rank 8) (restart 1 of 3)\n" +
			"rdzv: hint: start it again with the same command, there or on another node\n"},
		"is a consequence, slowly": {[]agent.Event{unsure, agent.Settling{}, lost,
			agent.JobEnded{Verdict: gone, Announce: true}}, unsureLine + "\n" + lostLine + "\n"},
		"no restart, slowly": {[]agent.Event{failed, agent.Settling{}, ended}, line + "\n"},
		"own":                {[]agent.Event{failed, own, report}, line + "\n" + last},
		"own, slowly":        {[]agent.Event{failed, agent.Settling{}, own, report}, line + "\n" + last},
		"a later attempt":    {[]agent.Event{failed, agent.Settling{}, first, ended}, slowly + line + "\n"},
		"own, a later attempt": {
			[]agent.Event{failed, agent.Settling{}, first, own, report}, slowly + line + "\n" + last,
		},
	} {
		var out strings.Builder
		c := New(console.To(&out, console.Destination{}))
		for _, e := range test.events {
			c.Event(e)
		}
		if out.String() != test.want {
			t.Errorf("%s: wrote\n%swant\n%s", name, &out, test.want)
		}
	}
}
