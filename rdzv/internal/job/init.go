package job

import (
	"maps"
	"slices"
	"time"

	"rdzv/rdzv/internal/record"
)

// InitTimes are when, after rank 0 has reached init_process_group, the leader asks the agents which
// of their workers have not, and when it reports these.
type InitTimes struct {
	Ask    time.Duration
	Report []time.Duration
}

// DefaultInitTimes are those of a job.
var DefaultInitTimes = InitTimes{
	8 * time.Second, []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute},
}

// initWatch is what the leader knows about which workers have reached init_process_group. Nothing
// counts until rank 0 has, which serves the store there: without it no other rank can have
// connected to that, so that what looks like it is the port of another program.
type initWatch struct {
	absence  absence
	begin    time.Time       // when rank 0 reached it; zero before
	askAt    time.Time       // zero before begin
	asked    bool            // the agents have been asked
	reportAt time.Time       // zero before begin, unless others try to connect to rank 0
	times    []time.Duration // of this report and the later ones, since begin or absence.since
	reported bool            // that ranks are missing
	done     bool            // that none is missing any more has been reported
	changed  bool            // since the last report
}

// takeReached notes which workers of an agent have reached init_process_group. A value that cannot
// be decoded is ignored, because nothing but a line for people depends on it.
func (s *State) takeReached(now time.Time, id string, value any) {
	a := s.attempt
	m := a.members.byID[id]
	r, err := read[Reached](value)
	if m == nil || err != nil || !s.config.Watch || a.init.done || a.end.verdict != nil {
		return
	}
	m.reached = &r
	a.init.changed = true
	isRank0 := func(u Unreached) bool { return u.Rank == 0 }
	if a.init.begin.IsZero() && m.seat.Rank == 0 && !slices.ContainsFunc(r.Missing, isRank0) {
		a.init.start(now, s.config.InitTimes)
	}
}

// start begins to count. If it has been reported that rank 0 was late, what follows is reported
// soon.
func (i *initWatch) start(now time.Time, t InitTimes) {
	i.begin, i.times = now, t.Report
	if i.absence.reported {
		i.times = append([]time.Duration{t.Report[0] - t.Ask}, t.Report...)
		t.Ask = 0
	}
	i.askAt, i.reportAt = now.Add(t.Ask), now.Add(i.times[0])
}

// watchInit asks the agents which of their workers are missing, when it is time, and reports it.
func (s *State) watchInit(now time.Time, w *writes) {
	a := s.attempt
	i := &a.init
	if a.end.verdict != nil || i.done {
		return
	}
	if !i.asked && !i.askAt.IsZero() && !now.Before(i.askAt) {
		i.asked = true // one that does not answer has none
		w.add("ask which ranks are missing", nil, Op{Key: a.keys.look(), Value: Look{}})
	}
	if i.changed && i.reported {
		s.reportAllReached(now, w)
	}
	i.changed = false
	if !i.done && !i.reportAt.IsZero() && !now.Before(i.reportAt) {
		s.reportInit(now, w)
	}
}

func (s *State) wakeInit(at *earliest) {
	i := &s.attempt.init
	if s.attempt.end.verdict != nil || i.done {
		return
	}
	if !i.asked {
		at.add(i.askAt)
	}
	at.add(i.reportAt)
}

// reportAllReached reports that no rank is missing any more.
func (s *State) reportAllReached(now time.Time, w *writes) {
	if p := s.initProgress(now); p.Reached >= p.Ranks {
		s.attempt.init.done = true
		s.tell(w, p)
	}
}

// tell reports something to the caller, and to the agent of rank 0.
func (s *State) tell(w *writes, p InitProgress) {
	s.notify(Init{p})
	w.add("tell which ranks are missing", nil, Op{Key: s.attempt.keys.init(), Value: p})
}

// reportInit reports which ranks are missing, if there are any. If there are none an agent may
// still answer late.
func (s *State) reportInit(now time.Time, w *writes) {
	i := &s.attempt.init
	if i.begin.IsZero() {
		s.reportAbsence(now, w)
		return
	}
	i.nextReport(i.begin)
	if p := s.initProgress(now); p.Reached < p.Ranks {
		i.reported = true
		s.tell(w, p)
	} else if i.absence.reported {
		s.reportAllReached(now, w)
	}
}

// nextReport schedules the next report of what began at a time.
func (i *initWatch) nextReport(began time.Time) {
	i.times, i.reportAt = i.times[1:], time.Time{}
	if len(i.times) > 0 {
		i.reportAt = began.Add(i.times[0])
	}
}

func (s *State) initProgress(now time.Time) InitProgress {
	p := InitProgress{Waited: now.Sub(s.attempt.init.begin)}
	missing, hosts := map[int][]int{}, map[int]string{} // ranks and name of each node, by node rank
	first := func(u Unreached) bool { return len(missing) == 0 || u.Rank < p.First.Rank }
	for _, m := range s.attempt.members.all {
		list, node := m.unreached(), m.seat.Node
		p.Ranks += m.seat.Slots
		p.Reached += m.seat.Slots - len(list)
		for _, u := range list {
			if first(u) {
				p.First, p.Host = u, m.Host
			}
			missing[node], hosts[node] = append(missing[node], u.Rank), m.Host
		}
	}
	for _, node := range slices.Sorted(maps.Keys(missing)) {
		p.Missing = append(p.Missing, NodeRanks{Host: hosts[node], Ranks: record.Ranges(missing[node])})
	}
	p.Missing, p.More = record.Cut(p.Missing)
	return p
}

// unreached are the workers of an agent that have not reached init_process_group, as far as known.
func (m *member) unreached() []Unreached {
	if m.settled || m.lost || m.reached == nil {
		return nil
	}
	return m.reached.Missing
}
