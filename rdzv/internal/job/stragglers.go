package job

import (
	"slices"
	"time"

	"rdzv/rdzv/internal/record"
)

// stragglers notes which workers have succeeded while others run. The others are reported, and the
// job ends after Config.ExitTimeout. Settled has the successes shortly before a failure.
type stragglers struct {
	first     *record.Worker // the first worker that succeeded
	at        time.Time      // when that was known
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
func (l *stragglers) note(now time.Time, o record.Outcome) {
	for _, w := range o.Workers {
		if w.OK() && !w.Stopped {
			l.successes = append(l.successes, success{w.Rank, now.Add(-time.Duration(w.Age))})
		}
	}
}

// before returns the successes shortly before a failure, nil if there are none.
func (l *stragglers) before(failedAt time.Time) *record.Successes {
	var s record.Successes
	var ranks []int
	for _, one := range l.successes {
		if before := failedAt.Sub(one.at); before >= 0 && before <= successTime {
			ranks = append(ranks, one.rank)
			s.Before = max(s.Before, record.Seconds(before))
		}
	}
	if len(ranks) == 0 {
		return nil
	}
	slices.Sort(ranks)
	s.Ranks, s.More = record.Cut(ranks)
	return &s
}

// begin begins to wait for the others when the first worker has succeeded.
func (l *stragglers) begin(now time.Time, workers []record.Worker, e *ending) {
	i := slices.IndexFunc(workers, record.Worker.OK)
	if i < 0 || l.first != nil || e.verdict != nil {
		return
	}
	l.first, l.at = &workers[i], now
}

// limit reports those that still run long after the first success, and ends the job after the exit
// timeout.
func (l *stragglers) limit(t *turn, c *settings, all []*member, e *ending) {
	if l.first == nil || e.verdict != nil {
		return
	}
	if !l.reported && !t.now.Before(l.at.Add(c.StragglingAfter)) {
		l.reported = true
		if list := l.list(all, c.StragglingAfter); len(list.Running) > 0 {
			t.notify(list)
		}
	}
	if c.ExitTimeout <= 0 || l.stopped || t.now.Before(l.at.Add(c.ExitTimeout)) {
		return
	}
	l.stopped = true
	if list := l.list(all, c.ExitTimeout); len(list.Running) > 0 {
		v := record.VerdictOf(record.Straggling)
		v.Stragglers = &list
		e.want(v)
	} // otherwise the last outcomes are being written
}

func (l *stragglers) wake(at *earliest, c *settings) {
	if l.first == nil {
		return
	}
	if !l.reported {
		at.add(l.at.Add(c.StragglingAfter))
	}
	if c.ExitTimeout > 0 && !l.stopped {
		at.add(l.at.Add(c.ExitTimeout))
	}
}

func (l *stragglers) list(all []*member, after time.Duration) record.Stragglers {
	var running []record.Straggler
	for _, m := range all {
		if m.settled || m.lost {
			continue
		}
		for _, rank := range m.seat.AllRanks() {
			if !slices.ContainsFunc(m.ended, func(w record.Worker) bool { return w.Rank == rank }) {
				running = append(running, record.Straggler{Rank: rank, Host: m.Host})
			}
		}
	}
	list := record.Stragglers{First: l.first.Rank, After: record.Seconds(after)}
	list.Running, list.More = record.Cut(running)
	return list
}
