package rdzv

import (
	"testing"
	"time"

	rules "rdzv/rdzv/internal/job"
)

// If it was reported that rank 0 did not listen, what follows is reported soon, also that none is
// missing.
func TestRank0Absent(t *testing.T) {
	times := rules.InitTimes{Ask: 9900 * time.Millisecond, Report: []time.Duration{10 * time.Second, time.Hour}}
	j, sessions, reports := startInitAt(t, times)
	if err := sessions[0].Init().Absent(j.ctx); err != nil {
		t.Fatal(err)
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
