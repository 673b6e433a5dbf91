package agent

import (
	"time"

	"rdzv/envmap"
)

// An agent that waits for others reports that after these times, and then every laterReports.
var firstReports = []time.Duration{5 * time.Second, 15 * time.Second, time.Minute}

const laterReports = 5 * time.Minute

// earlyReport is how soon an agent reports that the address of the store may be wrong.
const earlyReport = time.Second

// nextReport returns the time of the next report after the one at last, both since the agent began
// to wait; last is 0 before the first report.
func (c *Config) nextReport(last time.Duration) time.Duration {
	every := laterReports
	if c.ReportEvery != 0 {
		every = c.ReportEvery
	} else {
		for _, at := range firstReports {
			if at > last {
				return at
			}
		}
	}
	return last.Truncate(every) + every
}

// nextSearchReport returns nextReport for a search of this agent. Without a launcher the first
// report about an address that the user has given comes early, because it may be wrong. Under a
// launcher the first agent of each node reports, and rank 1: the first one may be the agent that is
// missing.
func (l *Local) nextSearchReport() func(last time.Duration) time.Duration {
	c, p := &l.Config, l.Placement
	named := c.Store != "" || c.Join != ""
	switch {
	case p.Launcher == envmap.None && named:
		return func(last time.Duration) time.Duration {
			if last == 0 {
				return earlyReport
			}
			return c.nextReport(last)
		}
	case p.LocalRank > 0 && p.Rank != 1:
		return nil
	}
	return c.nextReport
}
