package agent

import (
	"testing"
	"time"

	"rdzv/rdzv"
	"rdzv/wrap"
)

// How the job ended: the sentences whose form depends on what is known.
func TestEndInWords(t *testing.T) {
	unknown := JobEnded{Job: "train", StoreRank: rdzv.Unknown}
	host, rank := unknown, unknown
	host.StoreHost, rank.StoreHost, rank.StoreRank = "node1", "node1", 0
	silent, silentRank := unknown, rank
	silent.StoreSilent, silentRank.StoreSilent = rdzv.Seconds(10*time.Second), rdzv.Seconds(10*time.Second)
	etcd := unknown
	etcd.Etcd, etcd.StoreLost, etcd.EtcdLost = "https://etcd1:2379", "lost the store: it is full", "it is full"
	shared := unknown
	shared.StoreLost = "lost the shared store at 10.0.0.1:29600: it was started again"
	stragglers := rdzv.Stragglers{First: 0, After: rdzv.Seconds(time.Minute),
		Running: []rdzv.Straggler{{Rank: 1, Host: "node2"}}}
	late := JobEnded{JoinTimeout: time.Minute, Verdict: &rdzv.Verdict{
		Kind: rdzv.Incomplete, Roster: &rdzv.Roster{Joined: 1, Tasks: 2}}}
	problems := &rdzv.Verdict{Kind: rdzv.Unready, Problems: []rdzv.NodeProblem{
		{Problem: rdzv.Problem{Text: "one"}}, {Problem: rdzv.Problem{Text: "two"}}}}
	workers := []WorkerStarted{{Rank: 0, PID: 71}, {Rank: 1, PID: 72}}
	var many []WorkerStarted
	for i := range 10 {
		many = append(many, WorkerStarted{Rank: i, PID: 80 + i})
	}
	tenSeconds := rdzv.Seconds(10 * time.Second)
	for _, c := range []struct{ got, want string }{
		{unknown.String(), `lost the agent that hosted the store of job "train"`},
		{host.String(), "lost the agent on node1, which hosted the store"},
		{rank.String(), "lost rank 0's agent on node1, which hosted the store"},
		{silent.String(), "lost the connection to the other agents: the agent that hosted the store of job " +
			`"train" was silent for 10s`},
		{silentRank.String(), "lost the connection to the other agents: rank 0's agent on node1, which " +
			"hosted the store, was silent for 10s"},
		{etcd.String(), "lost etcd at https://etcd1:2379: it is full"},
		{shared.String(), "lost the shared store at 10.0.0.1:29600: it was started again"},
		{JobEnded{Verdict: &rdzv.Verdict{Kind: rdzv.Straggling, Stragglers: &stragglers}}.String(),
			"stopping rank 1 on node2: still running 1m0s after rank 0 succeeded (--exit-timeout)"},
		{late.String(), "timed out after 1m0s (--join-timeout): 1 of 2 agents joined"},
		{JobEnded{Verdict: problems}.String(), "one\ntwo"},
		{JobEnded{Verdict: problems}.Brief(), "one"},
		{JobEnded{}.Left(), "this agent has left the job, which goes on"},
		{Settling{Running: workers, Wait: tenSeconds}.String(),
			"waiting up to 10s for ranks 0,1 (pid 71, 72) to exit"},
		{Settling{Running: many, Wait: tenSeconds}.String(), "waiting up to 10s for ranks 0,1,2,3,4,5,6,7 " +
			"and 2 more (pid 80, 81, 82, 83, 84, 85, 86, 87) to exit"},
		{Settling{Left: []wrap.Process{{PID: 71, Name: "sleep"}}, Wait: tenSeconds}.String(),
			"waiting up to 10s for processes that the workers have left, 71 (sleep), to exit"},
		{Settling{Wait: tenSeconds}.String(), ""},
		{DumpingStacks{Workers: workers[1:]}.String(), "rank 1 has not exited; its stacks:"},
		{DumpingStacks{Workers: workers, IgnoresTerm: true}.String(),
			"ranks 0,1 ignore SIGTERM; their stacks:"},
		{Restarting{JoinTimeout: 0, MaxRestarts: 3, Restart: rdzv.Restart{Attempt: 1, Missing: 1}}.String(),
			"waiting for 1 more node (restart 1 of 3)"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
