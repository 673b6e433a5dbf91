package rdzv

import (
	"testing"
	"time"

	rules "rdzv/rdzv/internal/job"
)

// While rank 0 does not listen, it is reported how many of the others have been trying to connect,
// also to the agent of rank 0. When it has come, what follows is reported soon.
func TestRank0Absent(t *testing.T) {
	times := rules.InitTimes{Ask: 9900 * time.Millisecond, Report: []time.Duration{10 * time.Second, time.Hour}}
	j, sessions, reports := startInitAt(t, times)
	if err := sessions[0].Init().Absent(j.ctx, 71); err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		select {
		case <-s.Init().Rank0Absent():
		case <-j.ctx.Done():
			t.Fatal("an agent has not learned that rank 0 does not listen")
		}
	}
	connecting := func(s *Session, ranks int, waited time.Duration) {
		t.Helper()
		if err := s.Init().Connecting(j.ctx, ranks, waited); err != nil {
			t.Fatal(err)
		}
	}
	connecting(sessions[1], 2, 9*time.Second)
	connecting(sessions[2], 1, 20*time.Second)
	want := "rank 0 (node0) does not listen on MASTER_PORT yet; 3 of 4 ranks have been trying to " +
		"connect for 12s"
	j.report(reports, want)
	select {
	case p := <-sessions[0].Init().Progress():
		if p.Waited.Rounded() < 10*time.Second || p.Waited.Rounded() > 19*time.Second || p.Python != 71 {
			t.Errorf("%+v, want what is true of all three, and the process of rank 0", p)
		}
	case <-j.ctx.Done():
		t.Fatal("rank 0's agent has not got the report")
	}
	j.reached(sessions[0])
	for _, s := range sessions {
		select {
		case <-s.Init().Queried():
		case <-j.ctx.Done():
			t.Fatal("the agents were not asked")
		}
	}
	j.report(reports, "all 4 ranks have reached init_process_group by now, 12s after rank 0 did")
	j.finishInit(sessions, reports)
}

// Nothing is reported if rank 0 does not listen and nobody tries to connect to it, or no longer.
func TestNobodyConnects(t *testing.T) {
	j, sessions, reports := startInit(t)
	for _, ranks := range []int{0, 2, 0} {
		if err := sessions[1].Init().Connecting(j.ctx, ranks, -time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if err := sessions[0].Init().Absent(j.ctx, 71); err != nil {
		t.Fatal(err)
	}
	j.finishInit(sessions, reports)
}
