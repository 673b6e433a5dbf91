package agent

import (
	"fmt"
	"sync"
	"time"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/cadence"
	"rdzv/rdzv/agent/internal/token"
	"rdzv/rdzv/etcd"
	"rdzv/rdzv/meet"
)

// reporter passes events to the Config's function, one at a time.
type reporter struct {
	mu     sync.Mutex
	events func(Event)
}

func (r *reporter) send(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events(e)
}

// diagnose reports an error that does not change how the job proceeds.
func (r *reporter) diagnose(s Severity, err error) {
	r.send(Diagnostic{Severity: s, Err: err, Text: err.Error()})
}

func (r *reporter) tokenCreated(path string) { r.send(TokenCreated{path}) }

// slowFiles returns what reports that the file system of what does not respond.
func (r *reporter) slowFiles(what string) func() {
	return func() { r.diagnose(Warning, fmt.Errorf("the file system of %s does not respond", what)) }
}

// noticed is the event of what package meet reports while this agent looks for the others. The line
// by which others join is left out unless showKey allows it or it holds no key.
func noticed(n meet.Notice, showKey bool, place token.Place) Event {
	switch n := n.(type) {
	case meet.Searching:
		return Searching{n}
	case meet.Alone:
		e := Alone{
			Waited: n.After, NoBeacon: n.NoBeacon, Loopback: n.Loopback, JoinLine: n.JoinLine,
			Hint: n.Hint, Explained: n.Explained,
		}
		if n.Store.IsValid() {
			e.Store = n.Store.String()
		}
		if n.Secret && !showKey {
			e.JoinLine = ""
		}
		return e
	case meet.DifferentToken:
		return DifferentToken{n, place.Remedy(n)}
	case meet.DifferentVersion:
		return DifferentVersion{n}
	case meet.DifferentCommand:
		return DifferentCommand{n}
	case meet.DifferentStore:
		return DifferentStore{n}
	case meet.RanksMissing:
		return RanksMissing{n}
	case meet.NoMulticast:
		return NoMulticast{Err: n.Err, Text: n.Err.Error()}
	case meet.Disappeared:
		return Diagnostic{Severity: Warning, Text: n.String()}
	case meet.KeeperLost:
		return Diagnostic{Severity: Warning, Err: n.Err, Text: n.Err.Error()}
	}
	return nil
}

// announces tells whether this agent tells the user how the job ended; v is nil if the store was
// lost. A launcher shows the output of all agents, so one agent of each node does: on the store's
// node the agent that hosts the store, which is never lost unnoticed, on the others the first one,
// or the second one if the first one is lost.
// The node of a failed worker is different: there the worker's agent reports the failure.
func (m *membership) announces(v *rdzv.Verdict) bool {
	local := m.local.Placement.LocalRank
	failed := v != nil && v.Kind == rdzv.Failed
	switch {
	case m.local.Placement.Launcher == envmap.None, local == envmap.Unknown:
		return true
	case failed && m.onNode(v):
		return v.By == m.self.ID
	case m.conn.elects() && v != nil && v.Kind == rdzv.Lost && m.onNode(v) && v.LocalRank == 0:
		return local == 1
	case failed, !m.onNodeOfStore():
		return local == 0
	case v == nil:
		return local <= 1 // the store is usually lost with local rank 0
	}
	return m.conn.hosting()
}

func (m *membership) onNode(v *rdzv.Verdict) bool { return v.Host == m.self.Host }

// onNodeOfStore tells whether the store is on this node. Before the world is agreed, only the
// connection tells: its two ends then have the same address.
func (m *membership) onNodeOfStore() bool {
	return m.conn.hosting() ||
		m.conn.meeting != nil && !m.conn.shared() && m.conn.addr == m.conn.meeting.Addr.Addr().String()
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
		return m.session.Leads()
	}
	return storeLost && m.announces(nil)
}

// unavailable returns what reports why an etcd cluster cannot be used, as often as a search; next
// is nil if it does not.
func (r *reporter) unavailable(
	next func(last time.Duration) time.Duration,
) func(*etcd.UnavailableError) {
	began, last := time.Now(), time.Duration(0)
	return func(e *etcd.UnavailableError) {
		waited := time.Since(began)
		if next == nil || waited < next(last) {
			return
		}
		last = waited
		r.diagnose(Warning, fmt.Errorf("%w (%v)", e, waited.Round(time.Second)))
	}
}

// nextSearchReport returns the time of the next report of a search of this agent after the last
// one; nil if there is none. Without a launcher the first report about an address that the user has
// given comes early, because it may be wrong; on a platform late. Under a launcher the first agent
// of each node reports, and rank 1: the first one may be the agent that is missing.
func (l *Local) nextSearchReport() func(last time.Duration) time.Duration {
	reports, p := cadence.Cadence{Every: l.Config.ReportEvery}, l.Placement
	switch {
	case envmap.PlatformOf(l.env) != "":
		return reports.Late().Next
	case p.Launcher == envmap.None && l.layout().Known:
		return reports.Early().Next
	case p.LocalRank > 0 && p.Rank != 1:
		return nil
	}
	return reports.Next
}
