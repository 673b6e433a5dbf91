package rdzv

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Successes are workers that exited with 0 shortly before another one failed. That one may have
// failed because they were gone.
type Successes struct {
	Ranks  []int         `json:"ranks"` // sorted, at most 8
	More   int           `json:"more,omitempty"`
	Before time.Duration `json:"before"` // how long before the failure the first of them exited
}

// String returns a phrase for people: "ranks 0,1 had exited 0 0.2s before".
func (s Successes) String() string {
	ranks := make([]string, len(s.Ranks))
	for i, rank := range s.Ranks {
		ranks[i] = fmt.Sprint(rank)
	}
	text := plural("rank", len(s.Ranks)+s.More) + " " + strings.Join(ranks, ",")
	if s.More > 0 {
		text += fmt.Sprintf(" and %d more", s.More)
	}
	return fmt.Sprintf("%s had exited 0 %.1fs before", text, s.Before.Seconds())
}

// successTime is how long before a failure a success is no coincidence.
const successTime = 2 * time.Second

// success is when a worker exited with 0, by the leader's clock.
type success struct {
	rank int
	at   time.Time
}

// noteSuccesses records the successes of an outcome. The clocks of different hosts are not
// comparable: the time is that at which the leader receives the outcome, less the worker's age, which
// its agent has measured.
func (l *Leader) noteSuccesses(o Outcome) {
	for _, w := range o.Workers {
		if w.ok() && !w.Stopped {
			l.successes = append(l.successes, success{w.Rank, time.Now().Add(-w.Age)})
		}
	}
}

// successesBefore returns the successes shortly before the failure, nil if there are none.
func (l *Leader) successesBefore() *Successes {
	failedAt := l.verdictAt.Add(-l.verdict.Held)
	var s Successes
	var ranks []int
	for _, e := range l.successes {
		if before := failedAt.Sub(e.at); before >= 0 && before <= successTime {
			ranks = append(ranks, e.rank)
			s.Before = max(s.Before, before)
		}
	}
	if len(ranks) == 0 {
		return nil
	}
	slices.Sort(ranks)
	s.Ranks, s.More = cut(ranks)
	return &s
}
