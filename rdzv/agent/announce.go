package agent

import (
	"rdzv/envmap"
	"rdzv/rdzv"
)

// FirstOfNode tells whether no other agent of this node comes before this one, as far as the
// launcher says: one that has not joined announces only then what all of them know.
func (l *Local) FirstOfNode() bool {
	return l.Placement.Launcher == envmap.None || l.Placement.LocalRank <= 0
}

// announces tells whether this agent tells the user how the job ended; v is nil if the store was
// lost. A launcher shows the output of all agents, so one agent of each node does: on the store's
// node the agent that hosts the store, which is never lost unnoticed, on the others the first one.
// The node of a failed worker is different: there the worker's agent reports the failure.
func (m *membership) announces(v *rdzv.Verdict) bool {
	local := m.local.Placement.LocalRank
	failed := v != nil && v.Kind == rdzv.Failed
	switch {
	case m.local.Placement.Launcher == envmap.None, local == envmap.Unknown:
		return true
	case failed && v.Host == m.self.Host:
		return v.By == m.self.ID
	case failed, !m.onNodeOfStore():
		return local == 0
	case v == nil:
		return local <= 1 // the store is usually lost with local rank 0
	}
	return m.conn.hosting()
}

// onNodeOfStore tells whether the store is on this node. Before the world is agreed, only the
// connection tells: its two ends then have the same address.
func (m *membership) onNodeOfStore() bool {
	return m.conn.hosting() || m.conn.addr == m.conn.meeting.Addr.Addr().String()
}

// reports tells whether this agent reports the failure that ended the job: that of its own worker,
// or one that nobody has reported or announced because the agents that had to are lost.
func (m *membership) reports(s rdzv.Summary, storeLost bool) bool {
	v := s.Verdict
	switch {
	case v == nil || v.Kind != rdzv.Failed:
		return false
	case v.By == m.self.ID:
		return true
	case m.announces(v):
		return false
	case s.Unreported:
		return m.conn.hosting()
	}
	return storeLost && m.announces(nil)
}
