package rdzv

import (
	"slices"
	"time"
)

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
