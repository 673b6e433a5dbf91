package job

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rdzv/rdzv/internal/record"
)

// Successes are those at most 2 s before the failure, which was reported some time after it.
func TestSuccessesBefore(t *testing.T) {
	stopped := record.Worker{Rank: 6, Age: record.Seconds(2 * time.Second), Stopped: true}
	var l stragglers
	l.note(base, record.Outcome{Workers: []record.Worker{
		{Rank: 3, Age: record.Seconds(2 * time.Second)}, {Rank: 0, Age: record.Seconds(1500 * time.Millisecond)}, // before
		{Rank: 1, Age: record.Seconds(10 * time.Second)}, {Rank: 2}, // too long before, after
		{Rank: 5, Age: record.Seconds(2 * time.Second), Code: 1}, stopped,
	}})
	e := &ending{verdict: &record.Verdict{Kind: record.Failed, ReportDelay: record.Seconds(time.Second)}, verdictAt: base}
	s := l.before(e.failedAt())
	if s == nil || !slices.Equal(s.Ranks, []int{0, 3}) || time.Duration(s.Before) != time.Second {
		t.Fatalf("successes %+v, want ranks 0 and 3, 1s before", s)
	}
	if text := s.String(); !strings.HasPrefix(text, "ranks 0,3 had finished normally ") {
		t.Errorf("%q, want ranks 0,3", text)
	}
	e.verdict.ReportDelay = record.Seconds(time.Hour)
	if s := l.before(e.failedAt()); s != nil {
		t.Errorf("successes %+v after the failure, want none", s)
	}
}
