package rdzv

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Successes are those at most 2 s before the failure, which was reported some time after it.
func TestSuccessesBefore(t *testing.T) {
	stopped := Worker{Rank: 6, Age: 2 * time.Second, Stopped: true}
	l := &Leader{}
	l.noteSuccesses(Outcome{Workers: []Worker{
		{Rank: 3, Age: 2 * time.Second}, {Rank: 0, Age: 1500 * time.Millisecond}, // before
		{Rank: 1, Age: 10 * time.Second}, {Rank: 2}, // too long before, after
		{Rank: 5, Age: 2 * time.Second, Code: 1}, stopped,
	}})
	l.verdict, l.verdictAt = &Verdict{Kind: Failed, Held: time.Second}, time.Now()
	s := l.successesBefore()
	if s == nil || !slices.Equal(s.Ranks, []int{0, 3}) || s.Before < 900*time.Millisecond ||
		s.Before > successTime {
		t.Fatalf("successes %+v, want ranks 0 and 3, about 1s before", s)
	}
	if text := s.String(); !strings.HasPrefix(text, "ranks 0,3 had exited 0 ") {
		t.Errorf("%q, want ranks 0,3", text)
	}
	l.verdict.Held = time.Hour
	if s := l.successesBefore(); s != nil {
		t.Errorf("successes %+v after the failure, want none", s)
	}
}
