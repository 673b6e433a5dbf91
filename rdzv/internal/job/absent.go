package job

import (
	"time"
)

// absence is what the leader knows of a rank 0 that does not listen on MASTER_PORT.
type absence struct {
	rank0    *Unreached // nil until its agent has said so
	since    time.Time  // when the first of the others has begun to try to connect
	reported bool
}

// take notes that rank 0 does not listen. A value that cannot be decoded is ignored.
func (a *absence) take(value any) {
	if u, err := read[Unreached](value); err == nil {
		a.rank0 = &u
	}
}

// takeConnecting notes how many workers of a member try to connect to rank 0.
func (i *initWatch) takeConnecting(now time.Time, m *member, value any) {
	c, err := read[Connecting](value)
	if err != nil || !i.config.Watch {
		return
	}
	m.connects = &connects{c.Ranks, now.Add(-c.For)}
	if i.begin.IsZero() && i.reportAt.IsZero() {
		i.absence.since, i.times = m.connects.since, i.config.InitTimes.Report
		i.reportAt = i.absence.since.Add(i.times[0])
	}
}

// reportAbsence reports that rank 0 does not listen, if others still try to connect.
func (i *initWatch) reportAbsence(t *turn) {
	p := InitProgress{Absent: true}
	for _, m := range i.members.all {
		p.Ranks += m.seat.Workers()
		if c := m.connects; c != nil && c.ranks > 0 && !m.settled && !m.lost {
			waited := Seconds(t.now.Sub(c.since))
			if p.Reached == 0 || waited < p.Waited {
				p.Waited = waited
			}
			p.Reached += c.ranks
		}
		if m.seat.Has(0) {
			p.Host, p.Missing = m.Host, []NodeRanks{{Host: m.Host, Ranks: "0"}}
		}
	}
	if p.Reached == 0 || i.absence.rank0 == nil {
		i.reportAt = time.Time{} // until others try again
		return
	}
	i.nextReport(i.absence.since)
	p.First, p.Python = &i.absence.rank0.Rank, i.absence.rank0.Python
	i.absence.reported = true
	i.tell(t, p)
}
