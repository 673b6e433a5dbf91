package agent

import (
	"context"
	"fmt"
	"strings"
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
	case NoPeerYet:
		if n.Secret && !showKey {
			n.JoinLine = ""
		}
		return n
	case DifferentToken:
		n.Hint = place.Remedy(n)
		return n
	case meet.Disappeared:
		return Diagnostic{Severity: Warning, Text: n.String()}
	case meet.KeeperLost:
		return Diagnostic{Severity: Warning, Err: n.Err, Text: n.Err.Error()}
	case Event:
		return n
	}
	return nil
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
func nextSearchReport(l *Local) func(last time.Duration) time.Duration {
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

// write writes something to the store. It has no limit, because a store that does not answer for
// some time may answer again, and the job does not end without the end of a worker. f fails only if
// the store is lost, which is reported by itself, or this agent has left.
func (r *reporter) write(f func(context.Context) error) {
	if err := f(context.Background()); err != nil {
		r.diagnose(Verbose, err)
	}
}

// names reports names of variables, never their values.
func (r *reporter) names(what string, names []string) {
	r.send(EnvironmentNote{Text: what + ": " + strings.Join(names, ", "), Verbose: true})
}

// notice reports what the leader tells.
func (r *reporter) notice(n rdzv.Notice) {
	switch n := n.(type) {
	case rdzv.Warning:
		r.diagnose(Warning, n.Err)
	case Event:
		r.send(n)
	}
}
