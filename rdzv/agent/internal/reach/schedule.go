package reach

import (
	"slices"
	"time"

	"rdzv/rdzv"
)

// reportTimes are when missing ranks are reported, after rank 0 has reached init_process_group, and
// soon is one more if it has been reported that rank 0 was late.
var reportTimes = [...]time.Duration{10 * time.Second, time.Minute, 5 * time.Minute}

const soon = 2 * time.Second

// askAgain is after how long the agents are asked again at the earliest.
const askAgain = 8 * time.Second

// found is what the agents have answered.
type found int

const (
	unknown   found = iota // not enough to say that all ranks have reached init_process_group
	isMissing              // some ranks
	complete               // all have
)

// stateOf is what a progress says if so many agents have not answered.
func stateOf(p rdzv.InitProgress, silent int) found {
	switch {
	case p.Reached < p.Ranks:
		return isMissing
	case silent > 0:
		return unknown
	}
	return complete
}

// schedule decides when the agents are asked, and what is reported. Times count from when rank 0
// has reached init_process_group.
type schedule struct {
	reports  []time.Duration // that are left
	reported bool            // that rank 0 was late, or that ranks are missing
}

func newSchedule(late bool) *schedule {
	s := &schedule{reports: reportTimes[:], reported: late}
	if late {
		s.reports = slices.Insert(slices.Clone(s.reports), 0, soon)
	}
	return s
}

// first is when the agents are asked first.
func (s *schedule) first() (at time.Duration, more bool) { return s.reports[0], true }

// next takes what was found so long after the beginning. It says whether that is to be reported,
// and when the agents are asked again, unless all has been said.
//
// While ranks are missing they are asked more often than reports are due, to tell when none is
// missing any more: the longer that takes the less often, because in a large job the answers cost
// the store something.
func (s *schedule) next(elapsed time.Duration, f found) (report bool, at time.Duration, more bool) {
	if f == complete {
		return s.reported, 0, false
	}
	again := elapsed + max(askAgain, elapsed/8)
	if f == unknown {
		return false, again, true
	}
	for len(s.reports) > 0 && s.reports[0] <= elapsed {
		report, s.reported, s.reports = true, true, s.reports[1:]
	}
	if len(s.reports) > 0 {
		again = min(again, s.reports[0])
	}
	return report, again, true
}
