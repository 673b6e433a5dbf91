package rdzv

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"rdzv/rdzv/internal/record"
)

func TestAllWorkersSucceed(t *testing.T) {
	for _, n := range []int{1, 2, 4, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			j := start(t, LeaderConfig{Tasks: n})
			sessions := j.agents(n)
			worlds := j.worlds(sessions)
			ranks := map[int]bool{}
			for i, w := range worlds {
				ranks[w.Seat.First()] = true
				w.Seat = worlds[0].Seat
				if !reflect.DeepEqual(w, worlds[0]) {
					t.Errorf("agent %d: world %+v, agent 0: %+v", i, w, worlds[0])
				}
			}
			if w := worlds[0]; len(ranks) != n || w.Size != n || w.Agents != n || w.Nodes != n ||
				w.StoreHost != "node0" || w.StoreRank != 0 {
				t.Errorf("%d ranks of %+v", len(ranks), w)
			}
			for i, sum := range j.finish(sessions, succeeded) {
				if sum.Verdict == nil || sum.Verdict.Kind != Done || !sum.Settled ||
					sum.Code != 0 || len(sum.Failures) > 0 {
					t.Errorf("agent %d: %+v, verdict %+v", i, sum, sum.Verdict)
				}
				if cause := j.ended(sessions[i]); cause != sum.Verdict {
					t.Errorf("agent %d: context ended with %v", i, cause)
				}
			}
			if err := <-j.led; err != nil {
				t.Errorf("the leader: %v", err)
			}
			if err := j.store.Drain(j.ctx); err != nil {
				t.Errorf("agents that are still registered: %v", err)
			}
		})
	}
}

func TestFirstOfManyFailuresIsVerdict(t *testing.T) {
	const n = 64
	j := start(t, LeaderConfig{Tasks: n})
	sessions := j.agents(n)
	j.worlds(sessions)
	failed := func(i int) Worker {
		return Worker{Rank: i, PID: 2000 + i, Code: 1 + i, Text: fmt.Sprint("text of ", i)}
	}
	each(sessions, func(i int, s *Session) {
		if err := s.Fail(j.ctx, failed(i)); err != nil {
			t.Errorf("agent %d: %v", i, err)
		}
	})
	first := j.ended(sessions[0]).(*Verdict)
	if first.Kind != Failed || first.Code != first.Rank+1 ||
		first.By != sessions[first.Rank].config.Self.ID ||
		first.Text != fmt.Sprint("text of ", first.Rank) {
		t.Errorf("verdict %+v", first)
	}
	for i, sum := range j.finish(sessions, failed) {
		if sum.Verdict.By != first.By || sum.Verdict.Rank != first.Rank ||
			sum.Verdict.Text != first.Text || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum.Verdict)
		}
		if reported := len(sum.Failures); i == first.Rank && reported != n-1 || i != first.Rank &&
			reported != 0 {
			t.Errorf("agent %d reports %d failures; rank %d failed first", i, reported, first.Rank)
		}
	}
}

func TestReportOmitsStoppedWorkers(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 4})
	sessions := j.agents(4)
	ranks := map[int]int{}
	for i, w := range j.worlds(sessions) {
		ranks[i] = w.Seat.First()
	}
	workers := []Worker{{Rank: ranks[0], Code: 3}, {Rank: ranks[1], Code: 4},
		{Rank: ranks[2], Signal: 15, Stopped: true}, {Rank: ranks[3]}}
	if err := sessions[0].Fail(j.ctx, workers[0]); err != nil {
		t.Fatal(err)
	}
	sums := j.finish(sessions, func(i int) Worker { return workers[i] })
	if f := sums[0].Failures; len(f) != 1 || f[0].Rank != ranks[1] || f[0].Host != "node1" {
		t.Errorf("failures %+v, want only rank %d", f, ranks[1])
	}
	if err := sums[0].Verdict.Error(); err != fmt.Sprintf("rank %d on node0 failed first: exit 3",
		ranks[0]) {
		t.Errorf("verdict %q", err)
	}
}

// An agent whose Fail failed can still settle.
func TestFailedOutcomeIsVerdict(t *testing.T) {
	for name, workers := range map[string][]Worker{
		"failed":              {{Rank: 0}, {Rank: 1, Code: 9}},
		"failed and stopped":  {{Rank: 0, Signal: 15, Stopped: true}, {Rank: 1, Code: 9}},
		"stopped by its own":  {{Rank: 0}, {Rank: 1, Code: 9, Stopped: true}},
		"signal and text too": {{Rank: 0}, {Rank: 1, Code: 9, Text: strings.Repeat("é", record.MaxText)}},
	} {
		t.Run(name, func(t *testing.T) {
			j := start(t, LeaderConfig{Tasks: 2})
			m := member(0)
			m.Tasks = Unplaced(2)
			s, other := j.join(m), j.join(member(1))
			j.settle(s, workers...)
			j.settle(other, succeeded(2))
			sum := j.leave(other)
			if v := sum.Verdict; v.Kind != Failed || v.Rank != 1 || v.Code != 9 ||
				len(v.Text) > record.MaxText {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestJobEndedBySignal(t *testing.T) {
	for name, test := range map[string]struct {
		workers []Worker
		code    int
	}{
		"terminated by it":   {[]Worker{{Code: 7}, {Signal: 2, Stopped: true}}, 130},
		"wrote checkpoints":  {[]Worker{{Stopped: true}, {Stopped: true}}, 130},
		"killed after grace": {[]Worker{{Stopped: true}, {Signal: 9, Stopped: true}}, 130},
		"ended with a code":  {[]Worker{{Stopped: true}, {Code: 5, Stopped: true}}, 5},
		"by SIGTERM":         {[]Worker{{Stopped: true}, {Signal: 15, Stopped: true}}, 130},
	} {
		t.Run(name, func(t *testing.T) {
			j := start(t, LeaderConfig{Tasks: 2})
			sessions := j.agents(2)
			j.worlds(sessions)
			if err := sessions[1].End(j.ctx, 2, true); err != nil {
				t.Fatal(err)
			}
			if v := j.ended(sessions[0]).(*Verdict); v.Kind != Ended || v.Signal != 2 ||
				!v.Shared ||
				v.Host != "node1" {
				t.Errorf("verdict %+v", v)
			}
			for i, sum := range j.finish(sessions, func(i int) Worker { return test.workers[i] }) {
				if sum.Code != test.code || sum.Failures != nil {
					t.Errorf("agent %d: code %d, failures %v; want %d, none", i, sum.Code,
						sum.Failures, test.code)
				}
			}
		})
	}
}

func TestProblemsOfAllAgentsAreReported(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 4})
	sessions := make([]*Session, 4)
	missing := Problem{Kind: ProgramMissing, Text: "cannot find train.py", Hint: "is it on a shared disk?"}
	problems := [][]Problem{nil, {missing}, {
		{Kind: ProgramNotExecutable, Text: "cannot execute train.py", Hint: "chmod +x train.py"},
		{Kind: OtherProblem, Text: "no GPU", Hint: ""},
	}, {missing}}
	for i := range sessions {
		m := member(i)
		m.Hosting, m.Problems = i == 0, problems[i]
		sessions[i] = j.join(m)
	}
	_, err := sessions[0].World(j.ctx)
	var v *Verdict
	if !errors.As(err, &v) || v.Kind != Unready || v.Problems[1].Kind != ProgramMissing {
		t.Fatalf("World: %v, verdict %+v", err, v)
	}
	want := "cannot execute train.py (on node2)\ncannot find train.py (on node1, node3)\n" +
		"no GPU (on node2)"
	if v.Error() != want {
		t.Errorf("got %q, want %q", v.Error(), want)
	}
	var first NodeProblem
	if !errors.As(err, &first) || first.Kind != ProgramNotExecutable {
		t.Errorf("the error of World contains %+v, want the problem of node2", first)
	}
	if want := "chmod +x train.py, is it on a shared disk?"; strings.Join(v.Hints(), ", ") != want {
		t.Errorf("hints %q, want %q", v.Hints(), want)
	}
	each(sessions, func(_ int, s *Session) { j.settle(s); j.leave(s) })
}

func TestInvalidRanks(t *testing.T) {
	ranked := func(i, rank int) Member { m := member(i); m.Tasks = ranked(rank, Unknown); return m }
	onNode := func(i, rank int) Member { m := member(i); m.NodeRank = rank; return m }
	for name, test := range map[string]struct {
		members []Member
		want    string
	}{
		"same rank": {
			[]Member{ranked(0, 1), ranked(1, 1)},
			"cannot assign ranks: the agents on node0 (pid 1000) and node1 (pid 1001) both have " +
				"launcher rank 1",
		},
		"rank too high": {
			[]Member{ranked(0, 0), ranked(1, 2)},
			"cannot assign ranks: the agent on node1 (pid 1001) has launcher rank 2, but the job " +
				"has 2 tasks",
		},
		"some have ranks": {
			[]Member{ranked(0, 0), member(1)},
			"cannot assign ranks: the agent on node0 (pid 1000) has launcher rank 0, the agent " +
				"on node1 (pid 1001) has none",
		},
		"same node rank": {
			[]Member{onNode(0, 1), onNode(1, 1)},
			"cannot assign ranks: the agents on node0 (pid 1000) and node1 (pid 1001) both have " +
				"node rank 1",
		},
		"node rank too high": {
			[]Member{onNode(0, 0), onNode(1, 2)},
			"cannot assign ranks: the agent on node1 (pid 1001) has node rank 2, but the job has " +
				"2 agents",
		},
		"some have node ranks": {
			[]Member{member(0), onNode(1, 1)},
			"cannot assign ranks: the agent on node1 (pid 1001) has node rank 1, the agent on " +
				"node0 (pid 1000) has none",
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := start(t, LeaderConfig{Tasks: len(test.members)})
			var sessions []*Session
			for _, m := range test.members {
				sessions = append(sessions, j.join(m))
			}
			v, ok := j.ended(sessions[0]).(*Verdict)
			if !ok || v.Kind != Unready || v.Error() != test.want {
				t.Errorf("verdict %+v\nwant text %q", v, test.want)
			}
			each(sessions, func(_ int, s *Session) { j.settle(s); j.leave(s) })
		})
	}
}

func TestLeaveTwice(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 1})
	s := j.agents(1)[0]
	j.worlds([]*Session{s})
	first := j.finish([]*Session{s}, succeeded)[0]
	if second := j.leave(s); second.Verdict != first.Verdict {
		t.Errorf("first %+v, then %+v", first, second)
	}
}

// joinTimeout is long enough for the agents that do join.
const joinTimeout = 2 * time.Second
