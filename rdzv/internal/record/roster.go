package record

import (
	"fmt"

	"rdzv/internal/plural"
)

// Roster lists which tasks have joined and which are missing, as far as the leader knows. Without a
// launcher each agent is a task.
type Roster struct {
	// number of tasks that have joined
	Joined int `json:"joined"`
	// number of tasks of the job; without a launcher each agent is a task
	Tasks int `json:"tasks"`
	// the smallest number, if it varies; `tasks` is the largest then
	Min int `json:"min_tasks,omitempty"`
	// whether a launcher has started them
	Launched bool `json:"launched,omitempty"`
	// the launcher's ranks that are missing, the first 8; left out without a launcher
	Missing []int `json:"missing_tasks,omitempty"`

	// in a job without a launcher whose nodes all have a `--node-rank`, those that are missing,
	// the first 8
	MissingNodes []int `json:"missing_nodes,omitempty"`

	// nodes of the agents that have joined, the first 8
	Hosts     []string `json:"hosts,omitempty"`
	MoreHosts int      `json:"more_hosts,omitempty"` // how many other nodes there are

	// nodes of the missing ranks, the first 8, if the launcher tells and no agent has joined from
	// them
	Absent     []string `json:"absent_hosts,omitempty"`
	MoreAbsent int      `json:"more_absent_hosts,omitempty"` // how many other such nodes there are

	// agents that could not join because their tokens differ, the first 8
	Refused     []string `json:"refused,omitempty"`
	MoreRefused int      `json:"more_refused,omitempty"` // how many other such agents there are

	// agents that could not join because of another version of rdzv, the first 8
	OtherVersion []string `json:"other_version,omitempty"`
	// how many other such agents there are
	MoreOtherVersion int `json:"more_other_version,omitempty"`

	// whether no launcher reports what has happened to missing agents
	Unattended bool `json:"unattended,omitempty"`
}

// String returns a line for people: "3 of 4 tasks joined; rank 2 has not started rdzv or cannot
// connect (see the launcher's messages above)".
func (r Roster) String() string {
	what := "agents"
	if r.Launched {
		what = "tasks"
	}
	s := fmt.Sprintf("%d of %d %s joined", r.Joined, r.Tasks, what)
	missing := r.Tasks - r.Joined
	switch {
	case missing <= 0:
	case len(r.Missing) > 0:
		s += "; " + plural.Noun(missing, "rank") + " " + List(r.Missing, missing-len(r.Missing)) +
			r.whyMissing(missing)
	case len(r.MissingNodes) > 0:
		s += " (from " + List(r.Hosts, r.MoreHosts) + "); node " + plural.Noun(missing, "rank") + " " +
			List(r.MissingNodes, missing-len(r.MissingNodes)) + areMissing(missing)
	case len(r.Hosts) > 0:
		s += " (from " + List(r.Hosts, r.MoreHosts) + ")"
	}
	if len(r.Refused) > 0 && missing > 0 {
		s += "; refused because of a different token: " + List(r.Refused, r.MoreRefused)
	}
	if len(r.OtherVersion) > 0 && missing > 0 {
		s += "; refused because of another version of rdzv: " +
			List(r.OtherVersion, r.MoreOtherVersion)
	}
	if r.Min > 0 {
		s += fmt.Sprintf("; the job needs at least %d", r.Min)
	}
	return s
}

// whyMissing says why so many ranks may be missing, and where more is known about it.
func (r Roster) whyMissing(ranks int) string {
	have, its := " has", "its"
	if ranks > 1 {
		have, its = " have", "their"
	}
	if len(r.Refused)+len(r.OtherVersion) > 0 { // they may have been refused
		return areMissing(ranks)
	}
	s := have + " not started rdzv"
	if len(r.Absent) > 0 {
		s += " on " + List(r.Absent, r.MoreAbsent)
	}
	if r.Unattended {
		return s + " or cannot connect (see " + its + " output)"
	}
	return s + " or cannot connect (see the launcher's messages above)"
}

func areMissing(n int) string {
	if n > 1 {
		return " are missing"
	}
	return " is missing"
}
