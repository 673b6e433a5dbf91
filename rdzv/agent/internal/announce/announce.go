// Package announce decides which agents tell the user how a job ended. A launcher shows the output
// of all agents, so that not all of them should.
package announce

import (
	"rdzv/envmap"
	"rdzv/rdzv"
)

// Agent is one of them.
type Agent struct {
	Launcher  envmap.Launcher
	LocalRank int
	ID, Host  string
	Hosting   bool // it hosts the store
	Elects    bool // no agent does
	AtStore   bool // the store is on its node
	Leads     bool // it leads the job
}

// End tells whether the agent announces how the job ended; v is nil if the store was lost. One
// agent of each node does: on the store's node the agent that hosts the store, which is never lost
// unnoticed, on the others the first one, or the second one if the first one is lost. The node of a
// failed worker is different: there the worker's agent reports the failure.
func (a Agent) End(v *rdzv.Verdict) bool {
	failed := v != nil && v.Kind == rdzv.Failed
	onNode := v != nil && v.Host == a.Host
	switch {
	case a.Launcher == envmap.None, a.LocalRank == envmap.Unknown:
		return true
	case failed && onNode:
		return v.By == a.ID
	case a.Elects && v != nil && v.Kind == rdzv.Lost && onNode && v.LocalRank == 0:
		return a.LocalRank == 1
	case failed, !a.AtStore:
		return a.LocalRank == 0
	case v == nil:
		return a.LocalRank <= 1 // the store is usually lost with local rank 0
	}
	return a.Hosting
}

// Failure tells whether the agent reports the failure that ended the job: that of its own worker,
// or one that nobody has reported or announced because the agents that had to are lost. Without a
// launcher each agent does, because its user sees no other one's.
func (a Agent) Failure(s rdzv.Summary, storeLost bool) bool {
	v := s.Verdict
	switch {
	case v == nil || v.Kind != rdzv.Failed:
		return false
	case a.Reports(v):
		return true
	case a.End(v):
		return false
	case s.Unreported:
		return a.Leads
	}
	return storeLost && a.End(nil)
}

// Reports tells whether the agent reports a failure also if no agent is lost.
func (a Agent) Reports(v *rdzv.Verdict) bool {
	return v != nil && v.Kind == rdzv.Failed && (v.By == a.ID || a.Launcher == envmap.None)
}

// Restart tells whether the agent tells the user that an attempt has failed and another one
// follows: under a launcher the one that leads the job does.
func (a Agent) Restart() bool { return a.Launcher == envmap.None || a.Leads }
