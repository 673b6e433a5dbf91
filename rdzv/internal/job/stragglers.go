package job

import (
	"slices"
	"time"

	"rdzv/rdzv/internal/record"
)

// stragglers is what is known about workers that have succeeded while others run.
type stragglers struct {
	first     *Worker   // the first worker that succeeded
	at        time.Time // when that was known
	reported  bool
	stopped   bool // the exit timeout is over
	successes []success
}

// success is when a worker exited with 0, by the leader's clock.
type success struct {
	rank int
	at   time.Time
}

// successTime is how long before a failure a success is no coincidence.
const successTime = 2 * time.Second

// note records the successes of an outcome. The clocks of different hosts are not comparable: the
// time is that at which the leader receives the outcome, less the worker's age, which its agent has
// measured.
func (l *stragglers) note(now time.Time, o Outcome) {
	for _, w := range o.Workers {
		if w.OK() && !w.Stopped {
			l.successes = append(l.successes, success{w.Rank, now.Add(-w.Age)})
		}
	}
}

// before returns the successes shortly before the failure, nil if there are none.
func (l *stragglers) before(e *ending) *Successes {
	failedAt := e.verdictAt.Add(-e.verdict.ReportDelay)
	var s Successes
	var ranks []int
	for _, one := range l.successes {
		if before := failedAt.Sub(one.at); before >= 0 && before <= successTime {
			ranks = append(ranks, one.rank)
			s.Before = max(s.Before, before)
		}
	}
	if len(ranks) == 0 {
		return nil
	}
	slices.Sort(ranks)
	s.Ranks, s.More = record.Cut(ranks)
	return &s
}

// firstSuccess begins to wait for the others when the first worker has succeeded.
func (s *State) firstSuccess(now time.Time, workers []Worker) {
	a := s.attempt
	i := slices.IndexFunc(workers, Worker.OK)
	if i < 0 || a.success.first != nil || a.end.verdict != nil {
		return
	}
	a.success.first, a.success.at = &workers[i], now
}

// limitStragglers reports those that still run long after the first success, and ends the job after
// the exit timeout.
func (s *State) limitStragglers(now time.Time) {
	a := s.attempt
	l := &a.success
	if l.first == nil || a.end.verdict != nil {
		return
	}
	if !l.reported && !now.Before(l.at.Add(s.config.StragglingAfter)) {
		l.reported = true
		if list := s.stragglers(s.config.StragglingAfter); s.config.Straggling && len(list.Running) > 0 {
			s.notify(Straggling{list})
		}
	}
	if s.config.ExitTimeout <= 0 || l.stopped ||
		now.Before(l.at.Add(s.config.ExitTimeout)) {
		return
	}
	l.stopped = true
	if list := s.stragglers(s.config.ExitTimeout); len(list.Running) > 0 {
		v := record.VerdictOf(record.Straggling)
		v.Stragglers = &list
		a.end.want(v)
	} // otherwise the last outcomes are being written
}

func (s *State) wakeStragglers(at *earliest) {
	l := &s.attempt.success
	if l.first == nil || s.attempt.end.verdict != nil {
		return
	}
	if !l.reported {
		at.add(l.at.Add(s.config.StragglingAfter))
	}
	if s.config.ExitTimeout > 0 && !l.stopped {
		at.add(l.at.Add(s.config.ExitTimeout))
	}
}

func (s *State) stragglers(after time.Duration) Stragglers {
	var running []Straggler
	for _, m := range s.attempt.members.all {
		if m.settled || m.lost {
			continue
		}
		for rank := m.seat.Rank; rank < m.seat.Rank+m.Slots; rank++ {
			if !slices.ContainsFunc(m.ended, func(w Worker) bool { return w.Rank == rank }) {
				running = append(running, Straggler{Rank: rank, Host: m.Host})
			}
		}
	}
	list := Stragglers{First: s.attempt.success.first.Rank, After: after}
	list.Running, list.More = record.Cut(running)
	return list
}
