package job

import (
	"maps"
	"slices"
	"time"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/record"
)

// initWatch reports which workers have not reached init_process_group, see InitTimes. Nothing
// counts until rank 0 has, which serves the store there: without it no other rank can have
// connected to that, so that what looks like it is the port of another program.
type initWatch struct {
	config   *Config
	members  *members
	keys     keys.Attempt
	absent   bool            // it has been reported that rank 0 does not listen
	begin    time.Time       // when rank 0 reached it; zero before
	askAt    time.Time       // zero before begin
	asked    bool            // the agents have been asked
	reportAt time.Time       // zero before begin
	times    []time.Duration // of this report and the later ones, since begin
	reported bool            // that ranks are missing
	done     bool            // that none is missing any more has been reported
	changed  bool            // since the last report
}

// takeReached notes which workers of a member have reached init_process_group. A value that cannot
// be decoded is ignored, because nothing but a line for people depends on it.
func (i *initWatch) takeReached(now time.Time, m *member, value any) {
	r, err := read[Reached](value)
	if err != nil || !i.config.Watch || i.done {
		return
	}
	m.reached = &r
	i.changed = true
	isRank0 := func(u Unreached) bool { return u.Rank == 0 }
	if i.begin.IsZero() && m.seat.Has(0) && !slices.ContainsFunc(r.Missing, isRank0) {
		i.start(now, i.config.InitTimes)
	}
}

// start begins to count. If it has been reported that rank 0 was late, what follows is reported
// soon.
func (i *initWatch) start(now time.Time, t InitTimes) {
	i.begin, i.times = now, t.Report
	if i.absent {
		i.times = append([]time.Duration{t.Report[0] - t.Ask}, t.Report...)
		t.Ask = 0
	}
	i.askAt, i.reportAt = now.Add(t.Ask), now.Add(i.times[0])
}

// follow asks the agents which of their workers are missing, when it is time, and reports it.
func (i *initWatch) follow(t *turn) {
	if i.done {
		return
	}
	if !i.asked && !i.askAt.IsZero() && !t.now.Before(i.askAt) {
		i.asked = true // one that does not answer has none
		t.write("ask which ranks are missing", []Cond{absent(i.keys.InitQuery())},
			Op{Key: i.keys.InitQuery(), Value: InitQuery{}})
	}
	if i.changed && i.reported {
		i.reportAllReached(t)
	}
	i.changed = false
	if !i.done && !i.reportAt.IsZero() && !t.now.Before(i.reportAt) {
		i.report(t)
	}
}

func (i *initWatch) wake(at *earliest) {
	if i.done {
		return
	}
	if !i.asked {
		at.add(i.askAt)
	}
	at.add(i.reportAt)
}

// reportAllReached reports that no rank is missing any more.
func (i *initWatch) reportAllReached(t *turn) {
	if p := i.progress(t.now); p.Reached >= p.Ranks {
		i.done = true
		i.tell(t, p)
	}
}

// tell reports something to the caller, and to the agent of rank 0.
func (i *initWatch) tell(t *turn, p InitProgress) {
	t.notify(Init{p})
	t.write("tell which ranks are missing", nil, Op{Key: i.keys.Init(), Value: p})
}

// report reports which ranks are missing, if there are any. If there are none an agent may still
// answer late.
func (i *initWatch) report(t *turn) {
	i.times, i.reportAt = i.times[1:], time.Time{}
	if len(i.times) > 0 {
		i.reportAt = i.begin.Add(i.times[0])
	}
	if p := i.progress(t.now); p.Reached < p.Ranks {
		i.reported = true
		i.tell(t, p)
	} else if i.absent {
		i.reportAllReached(t)
	}
}

func (i *initWatch) progress(now time.Time) InitProgress {
	p := InitProgress{Waited: Seconds(now.Sub(i.begin))}
	missing, hosts := map[int][]int{}, map[int]string{} // ranks and name of each node, by node rank
	first := func(u Unreached) bool { return len(missing) == 0 || u.Rank < *p.First }
	for _, m := range i.members.all {
		list, node := m.unreached(), m.seat.Node
		p.Ranks += m.seat.Workers()
		p.Reached += m.seat.Workers() - len(list)
		for _, u := range list {
			if first(u) {
				p.First, p.Python, p.Host = &u.Rank, u.Python, m.Host
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
// One that has ended since the agent looked had probably left the process group.
func (m *member) unreached() []Unreached {
	if m.settled || m.lost || m.reached == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(m.reached.Missing), func(u Unreached) bool {
		return slices.ContainsFunc(m.ended, func(w Worker) bool { return w.Rank == u.Rank })
	})
}
