// Package cadence says when an agent that waits reports that: less and less often.
package cadence

import "time"

// Cadence is when reports are due.
type Cadence struct {
	Every time.Duration // for a display that replaces one report by the next; 0 if there is none
	first time.Duration // of the first report; 0 is the usual time
}

// An agent that waits for others reports that after these times, and then every laterReports.
var firstReports = []time.Duration{5 * time.Second, 15 * time.Second, time.Minute}

const laterReports = 5 * time.Minute

// earlyReport is how soon an agent reports that the address of the store may be wrong.
const earlyReport = time.Second

// lateReport is how soon it does so on a platform, where names of nodes appear with the nodes.
const lateReport = 10 * time.Second

// Early is c with a first report that comes early, because the address that the user has given may
// be wrong.
func (c Cadence) Early() Cadence { return Cadence{c.Every, earlyReport} }

// Late is c with a first report that comes late, as on a platform.
func (c Cadence) Late() Cadence { return Cadence{c.Every, lateReport} }

// Next returns the time of the next report after the one at last, both since the agent began to
// wait; last is 0 before the first report.
func (c Cadence) Next(last time.Duration) time.Duration {
	every := laterReports
	switch {
	case last == 0 && c.first != 0:
		return c.first
	case c.Every != 0:
		every = c.Every
	default:
		for _, at := range firstReports {
			if at > last {
				return at
			}
		}
	}
	return last.Truncate(every) + every
}
