package agent

import (
	"context"
	"errors"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/announce"
	"rdzv/rdzv/agent/internal/layout"
	"rdzv/rdzv/restart"
)

// attempt makes the events about the end of an attempt, or of the job with it.
type attempt struct {
	local   *Local
	conn    *connection
	session *rdzv.Session
	id      string     // of this agent
	host    string     // of this agent
	world   rdzv.World // of the attempt, or of the one before if there is none
	agreed  bool       // there is one
}

// announcer is this agent as one of those that may tell the user.
func (a *attempt) announcer() announce.Agent {
	// Before the world is agreed, only the connection tells whether the store is on this node: its two
	// ends then have the same address.
	c := a.conn
	atStore := c.hosting() ||
		c.meeting != nil && !c.sharedStore() && c.addr == c.meeting.Addr.Addr().String()
	return announce.Agent{
		Launcher: a.local.Placement.Launcher, LocalRank: a.local.all().first().Placement.LocalRank,
		ID: a.id, Host: a.host, Hosting: a.conn.hosting(), Elects: a.conn.elects(),
		AtStore: atStore, Leads: a.session.Leads(),
	}
}

// jobEnded is the event of the job's end.
func (a *attempt) jobEnded() JobEnded {
	e := JobEnded{
		Job: a.local.Job, Verdict: a.session.Verdict(), Hosting: a.conn.hosting(),
		Leads: a.session.Leads(), Agreed: a.agreed,
		StoreRank: rdzv.Unknown, JoinTimeout: a.local.Config.JoinTimeout,
	}
	if cause := context.Cause(a.session.Context()); a.conn.elects() {
		if !a.conn.sharedStore() {
			e.Etcd = a.conn.store()
		}
		if e.Verdict == nil && cause != nil {
			e.StoreLost = a.conn.lost(cause).Error()
			if lost, is := errors.AsType[*rdzv.StoreLostError](cause); is && e.Etcd != "" {
				e.EtcdLost = lost.Why.Error()
			}
		}
	}
	if e.Verdict == nil && !a.conn.elects() && a.conn.silent.Load() {
		e.StoreSilent = rdzv.Seconds(a.local.Config.PeerTimeout)
	}
	e.Own, e.Announce = e.Verdict != nil && e.Verdict.By == a.id, a.announcer().End(e.Verdict)
	e.ReportFollows = a.announcer().Reports(e.Verdict)
	if e.Verdict != nil && e.Verdict.Kind == rdzv.Incomplete && !a.conn.elects() {
		e.Hint = a.local.layout().LateHint()
	}
	if e.Agreed {
		e.StoreHost, e.StoreRank = a.world.StoreHost, a.world.StoreRank
	}
	switch v := e.Verdict; {
	case a.world.MaxRestarts == 0:
	case v != nil && v.Kind == rdzv.Stalled && a.world.Attempt == a.world.MaxRestarts:
		e.NoRestart, e.Attempt = restart.Exhausted, a.world.Attempt
	case v == nil && !a.conn.elects():
		e.Hint = a.local.layout().HostNotReplaced(a.conn.sharedStore())
	case v != nil && v.Kind == rdzv.Lost && v.Final: // the launcher
		e.Hint = layout.SubmitAgain
	}
	return e
}

// mayRestart tells whether another attempt may follow how this one has ended. The leader decides.
func (a *attempt) mayRestart(v *rdzv.Verdict) bool {
	return v != nil && v.MayRestart() && a.world.Attempt < a.world.MaxRestarts
}

// end is the event of the end of the job, or of an attempt that another one may follow, or whose
// reason is known only when all have settled; nil if only this agent's part has ended.
func (a *attempt) end() Event {
	end := a.jobEnded()
	if end.Verdict == nil && errors.Is(context.Cause(a.session.Context()), rdzv.ErrWithdrawn) {
		return nil // only for this agent
	}
	if !a.mayRestart(end.Verdict) && !a.session.MayBeConsequence() {
		return end
	}
	return a.failed(end.Verdict)
}

func (a *attempt) failed(v *rdzv.Verdict) AttemptFailed {
	e := AttemptFailed{
		Attempt: a.world.Attempt, Verdict: v, Own: v.By == a.id, Announce: a.announcer().End(v),
		MayBeConsequence: v.Kind == rdzv.Failed && a.session.MayBeConsequence(),
	}
	if a.mayRestart(v) {
		e.Announce = a.announcer().Restart()
	}
	return e
}

// notRestarted is the event of the job's end after an attempt that might have been followed by
// another one.
func (a *attempt) notRestarted(reason restart.Reason) JobEnded {
	e := a.jobEnded()
	if e.Verdict.Kind != rdzv.Lost && e.Verdict.Kind != rdzv.Stalled {
		return e // FailureReported has the reason
	}
	e.Attempt = a.world.Attempt
	if e.NoRestart = reason; reason == restart.Lost {
		e.Hint = a.local.layout().NotReplaced(a.conn.sharedStore())
	}
	return e
}

func (a *attempt) restarting(r rdzv.Restart) Restarting {
	return Restarting{
		Restart: r, MaxRestarts: a.world.MaxRestarts, Announce: a.announcer().Restart(),
		JoinTimeout: a.local.Config.JoinTimeout,
	}
}

// failure is the report on the worker that failed first. What only its agent knows is left out if
// that is another one, which may be lost.
func (a *attempt) failure(s rdzv.Summary, w *workers) *Failure {
	v := s.Verdict
	f := &Failure{
		Job: a.local.Job, Program: a.local.Config.Program,
		Rank: v.Rank, LocalRank: v.LocalRank, WorldSize: a.world.Size, Host: v.Host, PID: v.PID,
		Code: v.Code, Signal: v.Signal, OOM: v.OOM, Took: v.RanFor, Message: v.Text,
		Others: s.Failures, Disconnected: s.Disconnected, Consequence: v.MayBeConsequence(),
		Successes: s.Successes, Attempt: a.world.Attempt, NoRestart: s.NoRestart,
	}
	if f.Elsewhere = v.By != a.id; f.Elsewhere {
		for _, d := range s.Details {
			if d.Rank == v.Rank {
				f.Stderr, f.Joined, f.Log = d.Stderr, d.Joined, d.Log
			}
		}
		return f
	}
	i := max(0, a.world.Seat.Index(v.Rank))
	e := w.endings[i]
	f.OOM, f.Stderr, f.Joined, f.Hint = e.OOM, e.Findings.Lines, e.Joined, e.Hint
	f.Log = w.output.logOf(v.Rank)
	f.Shown = a.local.shown.Has(v.Rank, v.LocalRank)
	f.OnTerminal, f.Unread = a.local.unread(a.world, i, e.Unread)
	f.Mixed = !e.TracedAt.IsZero() && w.output.wroteSince(e.TracedAt, i)
	return f
}
