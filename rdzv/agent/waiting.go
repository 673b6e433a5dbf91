package agent

import "time"

// An agent that waits for others reports that after these times, and then every laterReports.
var firstReports = []time.Duration{5 * time.Second, 15 * time.Second, time.Minute}

const laterReports = 5 * time.Minute

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
