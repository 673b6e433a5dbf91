package rdzv

import (
	"slices"
	"testing"
	"time"

	rules "rdzv/rdzv/internal/job"
)

// startInit starts a job of four ranks on three nodes, whose leader reports at once which of them
// have not reached init_process_group, and then after an hour.
func startInit(t *testing.T) (*job, []*Session, chan InitProgress) {
	t.Helper()
	return startInitAt(t, rules.InitTimes{Ask: time.Nanosecond, Report: []time.Duration{time.Millisecond, time.Hour}})
}

// startInitAt does the same with other times.
func startInitAt(t *testing.T, times rules.InitTimes) (*job, []*Session, chan InitProgress) {
	t.Helper()
	reports := make(chan InitProgress, 8)
	j := start(t, LeaderConfig{
		Tasks: 3, Init: func(p InitProgress) { reports <- p }, initTimes: times,
	})
	two := member(1)
	two.Tasks = Unplaced(2)
	sessions := []*Session{j.join(member(0)), j.join(two), j.join(member(2))}
	j.worlds(sessions)
	return j, sessions, reports
}

func (j *job) reached(s *Session, except ...Unreached) {
	j.t.Helper()
	if err := s.Init().Reached(j.ctx, except); err != nil {
		j.t.Fatal(err)
	}
}

func (j *job) report(reports chan InitProgress, want string) {
	j.t.Helper()
	select {
	case p := <-reports:
		p.Waited = Seconds(12 * time.Second)
		if p.String() != want {
			j.t.Errorf("got %q, want %q", p, want)
		}
	case <-j.ctx.Done():
		j.t.Fatalf("there was no report %q", want)
	}
}

func (j *job) finishInit(sessions []*Session, reports chan InitProgress) {
	j.t.Helper()
	j.settle(sessions[0], succeeded(0))
	j.settle(sessions[1], succeeded(1), succeeded(2))
	j.settle(sessions[2], succeeded(3))
	for _, s := range sessions {
		j.leave(s)
	}
	if len(reports) > 0 {
		j.t.Errorf("there was one more report: %q", <-reports)
	}
}

// Agents are asked which workers are missing when rank 0 has reached init_process_group, and not
// before. That is reported then, and when none is missing any more.
func TestInitProgress(t *testing.T) {
	j, sessions, reports := startInit(t)
	j.reached(sessions[1], Unreached{Rank: 2, Python: 71})
	select {
	case <-sessions[2].Init().Queried():
		t.Error("the agents were asked although rank 0 has not reached it")
	case p := <-reports:
		t.Errorf("%q was reported although rank 0 has not reached it", p)
	default:
	}
	j.reached(sessions[2], Unreached{Rank: 3})
	j.reached(sessions[0])
	j.report(reports, "ranks 2 (node1), 3 (node2) have not reached init_process_group"+
		"; 2 of 4 ranks have been waiting for 12s")
	for _, s := range sessions {
		select {
		case <-s.Init().Queried():
		case <-j.ctx.Done():
			t.Fatal("the agents were not asked")
		}
	}
	j.reached(sessions[1])
	j.reached(sessions[2])
	j.report(reports, "all 4 ranks have reached init_process_group by now, 12s after rank 0 did")
	j.finishInit(sessions, reports)
}

// Nothing is reported if all ranks have reached it in time. An agent that does not answer has no
// missing ranks.
func TestInitWithoutDelay(t *testing.T) {
	j, sessions, reports := startInit(t)
	j.reached(sessions[1])
	j.reached(sessions[0])
	j.finishInit(sessions, reports)
}

// An agent that answers after the first report is in the next one.
func TestInitLateAnswer(t *testing.T) {
	t.Parallel()
	times := []time.Duration{time.Nanosecond, 2 * time.Second}
	j, sessions, reports := startInitAt(t, rules.InitTimes{Ask: 50 * time.Millisecond, Report: times})
	j.reached(sessions[0])
	select {
	case <-sessions[2].Init().Queried():
	case <-j.ctx.Done():
		t.Fatal("the agents were not asked")
	}
	j.reached(sessions[2], Unreached{Rank: 3})
	j.report(reports, "rank 3 (node2) has not reached init_process_group; "+
		"3 of 4 ranks have been waiting for 12s")
	j.finishInit(sessions, reports)
}

// A rank that has succeeded is not missing.
func TestInitAfterSuccess(t *testing.T) {
	j, sessions, reports := startInit(t)
	j.reached(sessions[1], Unreached{Rank: 1}, Unreached{Rank: 2})
	j.reached(sessions[2], Unreached{Rank: 3})
	j.settle(sessions[2], succeeded(3))
	j.reached(sessions[0])
	j.report(reports, "ranks 1-2 (node1) have not reached init_process_group"+
		"; 2 of 4 ranks have been waiting for 12s")
	j.finishInit(sessions, reports)
}

// Nothing is reported if no rank ever reaches it.
func TestInitWithoutRanks(t *testing.T) {
	j, sessions, reports := startInit(t)
	j.reached(sessions[2], Unreached{Rank: 3})
	j.finishInit(sessions, reports)
}

func TestInitProgressText(t *testing.T) {
	node := func(host, ranks string) NodeRanks { return NodeRanks{Host: host, Ranks: ranks} }
	for _, row := range []struct {
		progress InitProgress
		want     string
	}{
		{
			InitProgress{Ranks: 8, Reached: 7, Missing: []NodeRanks{node("node2", "5")}},
			"rank 5 (node2) has not reached init_process_group; 7 of 8 ranks have been waiting " +
				"for 12s",
		},
		{
			InitProgress{Ranks: 2, Reached: 1, Missing: []NodeRanks{node("node2", "1")}},
			"rank 1 (node2) has not reached init_process_group; 1 of 2 ranks has been waiting " +
				"for 12s",
		},
		{
			InitProgress{
				Ranks: 64, Reached: 4, More: 1,
				Missing: slices.Repeat([]NodeRanks{node("n", "4-5")}, 2),
			},
			"ranks 4-5 (n), 4-5 (n) and 1 more node have not reached init_process_group" +
				"; 4 of 64 ranks have been waiting for 12s",
		},
		{
			InitProgress{Ranks: 2, Absent: true, Host: "node1", Master: "10.77.0.11:41235"},
			"rank 0 (node1) does not listen on MASTER_PORT (10.77.0.11:41235) yet, 12s after its start",
		},
		{
			InitProgress{Ranks: 2, Reached: 2},
			"all 2 ranks have reached init_process_group by now, 12s after rank 0 did",
		},
	} {
		row.progress.Waited = Seconds(12*time.Second + 300*time.Millisecond)
		if got := row.progress.String(); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}
