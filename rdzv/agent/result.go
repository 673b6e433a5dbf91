package agent

import (
	"errors"
	"fmt"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/meet"
)

// Result is how the job of an agent ended.
type Result struct {
	Job string
	rdzv.Summary
	World     rdzv.World // zero if the job ended before it was agreed
	Failure   *Failure   // as reported; nil if this agent has reported none
	Hosting   bool       // the store was in this process
	StoreLost bool       // the agent that hosted the store was lost before this one left
	Ended     JobEnded   // as reported
}

// failure is the report on the worker that failed first.
func (m *membership) failure(s rdzv.Summary, endings []ending) *Failure {
	v := s.Verdict
	var e ending // of another agent's worker only the verdict is known
	if v.By == m.self.ID {
		e = endings[v.Rank-m.world.Seat.Rank]
	}
	return &Failure{
		Job: m.local.Job, Program: m.local.Config.Program,
		Rank: v.Rank, LocalRank: v.LocalRank, WorldSize: m.world.Size, Host: v.Host, PID: v.PID,
		Code: v.Code, Signal: v.Signal, OOM: e.oom, Took: v.Took,
		Message: v.Text, Stderr: e.findings.Lines, Others: s.Failures, Successes: s.Successes,
		OnTerminal: v.By == m.self.ID && m.local.Config.stderrOnTerminal(), Hint: e.hint,
	}
}

// jobEnded is the event of the job's end.
func (m *membership) jobEnded() JobEnded {
	e := JobEnded{
		Job: m.local.Job, Verdict: m.session.Verdict(), Hosting: m.conn.hosting(),
		StoreRank: rdzv.Unknown,
	}
	e.Own, e.Announce = e.Verdict != nil && e.Verdict.By == m.self.ID, m.announces(e.Verdict)
	if m.apart == nil {
		e.StoreHost, e.StoreRank = m.world.StoreHost, m.world.StoreRank
	}
	return e
}

// JoinTimeoutError says that not all agents joined within Config.JoinTimeout.
type JoinTimeoutError struct {
	Job     string
	Agents  int
	Timeout time.Duration
	Search  *meet.NotFoundError // nil if this agent had found the store
}

func (e *JoinTimeoutError) Error() string {
	return fmt.Sprintf("timed out after %v: %s", e.Timeout, e.Reason())
}

// Reason says in one line why the others were not found.
func (e *JoinTimeoutError) Reason() string {
	if e.Search != nil {
		return e.Search.Error()
	}
	return fmt.Sprintf("not all of the %d agents joined", e.Agents)
}

// Hint is what to try about it.
func (e *JoinTimeoutError) Hint() string {
	if e.Search != nil {
		return e.Search.Hint
	}
	return ""
}

// notJoined is the error of an agent that never was a member.
func (l *Local) notJoined(err error) error {
	if errors.Is(err, errJoinTimeout) {
		late := &JoinTimeoutError{Job: l.Job, Agents: l.Agents, Timeout: l.Config.JoinTimeout}
		if errors.As(err, &late.Search) {
			l.adviseOnToken(late.Search)
		}
		return late
	}
	if r, ok := errors.AsType[*meet.RefusedError](err); ok {
		return &refused{r, l.tokenSource().Place()}
	}
	if signal, ok := errors.AsType[*SignalError](err); ok {
		return signal // what else was tried meanwhile does not matter
	}
	return err
}
