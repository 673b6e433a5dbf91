package status

import (
	"encoding/json"
	"reflect"
	"testing"

	"rdzv/rdzv"
)

func answer(t *testing.T, host string, a Agent) rdzv.Answer {
	t.Helper()
	value, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return rdzv.Answer{Peer: rdzv.Peer{ID: host, Host: host, PID: 71, Tasks: 1}, Value: value}
}

// agentOf is an agent of a job of 4 ranks on 2 nodes with these ranks, of which each tells whether
// it has reached init_process_group.
func agentOf(first int, reached ...bool) Agent {
	a := Agent{State: Running, Seconds: 5, Joined: true, Tasks: 2, WorldSize: 4, Nodes: 2}
	for i, r := range reached {
		a.Ranks = append(a.Ranks, Rank{Rank: first + i, State: Alive, Init: new(r)})
	}
	return a
}

// inits are the ranks that have reached init_process_group.
func inits(ranks []Rank) (list []int) {
	for _, r := range ranks {
		if r.Init != nil && *r.Init {
			list = append(list, r.Rank)
		}
	}
	return list
}

func TestOf(t *testing.T) {
	later, sooner := agentOf(2, true, false), agentOf(0, true, true)
	j := Of("x", []rdzv.Answer{answer(t, "node2", later), answer(t, "node1", sooner)}, nil, "")
	if j.State != Running || j.Seconds != 5 || j.Tasks != 2 || j.Joined != 2 || j.WorldSize != 4 ||
		j.Nodes != 2 || !reflect.DeepEqual(inits(j.Ranks), []int{0, 1, 2}) {
		t.Errorf("%+v", j)
	}
	if missing := j.NotReached(); len(missing) != 1 || missing[0].Rank != 3 {
		t.Errorf("not reached: %+v", missing)
	}
}

// What counts as init_process_group is that rank 0 listens.
func TestNothingIsReachedBeforeRank0(t *testing.T) {
	answers := []rdzv.Answer{
		answer(t, "node1", agentOf(0, false, true)), answer(t, "node2", agentOf(2, true, true)),
	}
	j := Of("x", answers, nil, "")
	if got := inits(j.Ranks); got != nil || j.NotReached() != nil {
		t.Errorf("ranks %v have reached it; missing %v", got, j.NotReached())
	}
}

// The ranks of an agent that has not answered, or not with a status, are in the table.
func TestMissingAnswers(t *testing.T) {
	seat := func(rank int) rdzv.Seat { return rdzv.Seat{Tasks: []rdzv.SeatTask{{Rank: rank, Slots: 2}}} }
	bad := rdzv.Answer{Peer: rdzv.Peer{Host: "node2", PID: 72, Tasks: 1, Seat: seat(2)}, Error: "no idea"}
	silent := rdzv.Peer{Host: "node3", PID: 73, Tasks: 1, Seat: seat(4)}
	answers := []rdzv.Answer{answer(t, "node1", agentOf(0, true, true)), bad}
	j := Of("x", answers, []rdzv.Peer{silent}, "")
	want := []Rank{
		{Rank: 2, Host: "node2", AgentPID: 72, State: NoAnswer},
		{Rank: 3, Host: "node2", AgentPID: 72, State: NoAnswer},
		{Rank: 4, Host: "node3", AgentPID: 73, State: NoAnswer},
		{Rank: 5, Host: "node3", AgentPID: 73, State: NoAnswer},
	}
	if j.Joined != 3 || len(j.Ranks) != 6 || !reflect.DeepEqual(j.Ranks[2:], want) {
		t.Errorf("%+v", j)
	}
	if got := Of("x", nil, []rdzv.Peer{{Host: "node1"}}, ""); got.State != "" || len(got.Ranks) != 0 {
		t.Errorf("of a job that has not answered: %+v", got)
	}
}

// The counts of a large job do not keep an agent from answering.
func TestFit(t *testing.T) {
	for limit, want := range map[int]int{1 << 20: 10000, 20_000: 0} {
		a := agentOf(0, true, true)
		a.Collectives = &Collectives{Text: "rank 5 is behind", Launched: make([]int64, 10000)}
		a.Fit(limit)
		text, _ := json.Marshal(a)
		if c := a.Collectives; len(c.Launched) != want || c.Text == "" || len(text) > limit {
			t.Errorf("limit %d: %d bytes with the counts of %d ranks", limit, len(text), len(c.Launched))
		}
	}
}

// Who is known only by an ID, or was not asked, has ranks without a host.
func TestUnknownAgents(t *testing.T) {
	answers := []rdzv.Answer{answer(t, "node1", agentOf(1, true, true))}
	want := []Rank{{Rank: 0, State: NoAnswer}, {Rank: 3, State: NoAnswer}}
	for alone, missing := range map[string][]rdzv.Peer{"": {{ID: "a"}}, "frozen": nil} {
		j := Of("x", answers, missing, alone)
		if len(j.Ranks) != 4 || j.Ranks[0] != want[0] || j.Ranks[3] != want[1] || j.Alone != alone {
			t.Errorf("%q: %+v", alone, j)
		}
	}
}

// If no answer tells how an agent is, the report says why.
func TestOnlyErrors(t *testing.T) {
	job := Of("x", []rdzv.Answer{{Error: "the agent ends"}, {Error: "closed"}}, nil, "")
	if job.State != "" || job.Text != "the agent ends" {
		t.Errorf("state %q, text %q", job.State, job.Text)
	}
}

// The end of a job is known as soon as one agent knows it.
func TestEnding(t *testing.T) {
	ending := agentOf(2, true, true)
	ending.State, ending.Seconds, ending.Ending = Ending, 1, "rank 3 failed"
	answers := []rdzv.Answer{answer(t, "node1", agentOf(0, true, true)), answer(t, "node2", ending)}
	j := Of("x", answers, nil, "")
	if j.State != Ending || j.Seconds != 1 || j.Ending != "rank 3 failed" {
		t.Errorf("%+v", j)
	}
}

// Agents that have not joined are one job; those of two stores are not.
func TestAdd(t *testing.T) {
	alone := Of("x", []rdzv.Answer{answer(t, "node1", Agent{State: Joining, Tasks: 4})}, nil, "")
	joined := Of("x", []rdzv.Answer{
		answer(t, "node1", Agent{State: Joining, Joined: true, Tasks: 4}),
	}, nil, "")
	var r Report
	for _, j := range []Job{alone, alone, joined, joined} {
		r.Add(j)
	}
	if len(r.Jobs) != 3 || len(r.Jobs[0].Waiting) != 2 || r.Jobs[0].Joined != 0 ||
		r.Jobs[1].Joined != 1 {
		t.Errorf("%+v", r.Jobs)
	}
}

// All agents of a job are in the same attempt, unless some have not begun the next one.
func TestAttempt(t *testing.T) {
	earlier, later := agentOf(0, true), agentOf(1, false)
	earlier.State, earlier.Attempt, earlier.MaxRestarts = Restarting, 1, 3
	later.Attempt, later.MaxRestarts = 2, 3
	j := Of("x", []rdzv.Answer{answer(t, "node1", earlier), answer(t, "node2", later)}, nil, "")
	if j.State != Restarting || j.Attempt != 2 || j.Restarts != 3 {
		t.Errorf("%+v", j)
	}
}

// What NCCL says comes from the first agent that knows it, for the ranks of all agents.
func TestCollectives(t *testing.T) {
	agents := []Agent{
		{State: Running, Joined: true, Ranks: []Rank{{Rank: 0}}},
		{State: Running, Joined: true, Ranks: []Rank{{Rank: 1}, {Rank: 2}},
			Collectives: &Collectives{Text: "rank 1 is behind", Launched: []int64{7, 6, -1}}},
		{State: Running, Joined: true, Ranks: []Rank{{Rank: 3}},
			Collectives: &Collectives{Text: "other", Launched: []int64{1, 1, 1, 1}}},
	}
	var answers []rdzv.Answer
	for _, a := range agents {
		value, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, rdzv.Answer{Value: value})
	}
	j := Of("train", answers, nil, "")
	if j.Collectives != "rank 1 is behind" {
		t.Errorf("NCCL says %q", j.Collectives)
	}
	for i, want := range []int64{7, 6, -1, -1} {
		got := int64(-1)
		if c := j.Ranks[i].Collectives; c != nil {
			got = *c
		}
		if got != want {
			t.Errorf("rank %d has launched %d, want %d", i, got, want)
		}
	}
}
