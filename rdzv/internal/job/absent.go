package job

import "time"

// absence is for the report that others try to connect to a rank 0 that does not listen on
// MASTER_PORT.
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

// progress is how many workers try to connect to rank 0, and for how long, and where that is.
func (a *absence) progress(now time.Time, members *members) InitProgress {
	p := InitProgress{Absent: true}
	for _, m := range members.all {
		p.Ranks += m.seat.Workers()
		if c := m.connects; c != nil && c.ranks > 0 && !m.settled && !m.lost {
			waited := Seconds(now.Sub(c.since))
			if p.Reached == 0 || waited < p.Waited {
				p.Waited = waited
			}
			p.Reached += c.ranks
		}
		if m.seat.Has(0) {
			p.Host, p.Missing = m.Host, []NodeRanks{{Host: m.Host, Ranks: "0"}}
		}
	}
	return p
}
