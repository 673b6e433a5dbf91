package agent

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/program"
	"rdzv/rdzv/etcd"
	"rdzv/rdzv/meet"
	"rdzv/wrap"
)

// Result is how the job of an agent ended. Summary.Code is not the exit code of the job, which
// [ExitCode] returns: it is 0 unless a signal ended the job. That of the worker that failed first
// is Summary.Verdict.Code.
type Result struct {
	Job string
	rdzv.Summary
	World     rdzv.World // zero if the job ended before it was agreed
	Failure   *Failure   // as reported; nil if this agent has reported none
	Hosting   bool       // the store was in this process
	Leads     bool       // this agent led the job: it hosted the store, or etcd's agents elected it
	StoreLost bool       // the store was lost before this agent left
	Ended     JobEnded   // as reported
	// Ranks are when workers have started and ended in the last attempt: those of this agent, and if
	// it has Config.RankTimes and leads the job, runs rank 0 or reports the failure, those of all
	// agents that have settled.
	Ranks []RankTimes
}

// RankTimes are times of one worker, by the clock of its node; nil is a time that is not known, or
// has not come.
type RankTimes struct {
	Rank  int        `json:"rank"`
	Start *time.Time `json:"start"`
	// when it has reached init_process_group, to a second; see Config.RankTimes
	Init        *time.Time `json:"init"`
	FirstOutput *time.Time `json:"first_output"` // of what the agent reads
	End         *time.Time `json:"end"`
}

// timesOf are the times of workers; of several details of one, the first counts.
func timesOf(details []rdzv.Detail) (list []RankTimes) {
	known := func(ms int64) *time.Time {
		if ms == 0 {
			return nil
		}
		return new(time.UnixMilli(ms).UTC())
	}
	seen := map[int]bool{}
	for _, d := range details {
		if seen[d.Rank] {
			continue
		}
		seen[d.Rank] = true
		list = append(list, RankTimes{
			Rank: d.Rank, Start: known(d.Start), Init: known(d.Init), FirstOutput: known(d.FirstOutput),
			End: known(d.End),
		})
	}
	return list
}

// JoinTimeoutError says that not all agents joined within Config.JoinTimeout.
type JoinTimeoutError struct {
	Job      string
	Tasks    int  // how many had to join; without a launcher they are agents
	Launched bool // a launcher has started them
	Timeout  time.Duration
	Search   *meet.NotFoundError    // nil if this agent had found the store
	Etcd     *etcd.UnavailableError // why it could not be used; nil if it could
	Earlier  *rdzv.EarlierRunError  // for whose processes this agent waited; nil if it did not
	Awaited  string                 // which files did not respond; "" if all have
}

func (e *JoinTimeoutError) Error() string {
	return timedOut(e.Timeout, e.reason())
}

// reason says in one line why the others were not found.
func (e *JoinTimeoutError) reason() string {
	switch {
	case e.Search != nil:
		return e.Search.Error()
	case e.Etcd != nil:
		return e.Etcd.Error()
	case e.Earlier != nil:
		return e.Earlier.Error()
	case e.Awaited != "":
		return e.Awaited
	}
	if e.Launched {
		return fmt.Sprintf("not all of the %d tasks joined", e.Tasks)
	}
	return fmt.Sprintf("not all of the %d agents joined", e.Tasks)
}

// Hint returns a suggestion for the user, or "" if none is known.
func (e *JoinTimeoutError) Hint() string {
	switch {
	case e.Search != nil:
		return e.Search.Hint
	case e.Etcd != nil:
		return e.Etcd.Hint()
	case e.Earlier != nil:
		return "start the job again later, or with a longer --join-timeout"
	}
	return ""
}

// notJoined is the error of an agent that never was a member.
func (l *Local) notJoined(err error) error {
	if errors.Is(err, errJoinTimeout) {
		late := &JoinTimeoutError{
			Job: l.Job, Tasks: l.Agents, Launched: l.Placement.Launcher != envmap.None,
			Timeout: l.Config.JoinTimeout, Awaited: l.awaited,
		}
		if errors.As(err, &late.Search) {
			l.token().Advise(late.Search)
			if hint := l.layout().LateHint(); hint != "" {
				late.Search.Hint += "\n" + hint
			}
		}
		errors.As(err, &late.Etcd)
		errors.As(err, &late.Earlier)
		return late
	}
	if r, ok := errors.AsType[*meet.RefusedError](err); ok {
		return l.token().Refused(r)
	}
	if signal, ok := errors.AsType[*SignalError](err); ok {
		return signal // what else was tried meanwhile does not matter
	}
	return err
}

// The exit codes of a job that did not end with the exit code of a worker.
const (
	CodeUnready       = 121 // a check failed on some node, no worker was started
	CodeStraggling    = 122 // workers were stopped after --exit-timeout
	CodeLost          = 123 // an agent, a node or the store was lost
	CodeIncomplete    = 124 // not all agents joined within --join-timeout
	CodeAgent         = 125 // rdzv itself failed: wrong usage, no token, no space or port for a store
	CodeNotExecutable = 126 // the program cannot be executed, or its script cannot be read, on a node
	CodeMissing       = 127 // the program, or its interpreter or script, is missing on some node
	CodeSignal        = 128 // plus n: signal n ended the first worker that failed, or the job
)

// CodeStalled is the exit code of a job whose workers made no progress for --stall-timeout.
const CodeStalled = rdzv.StalledCode

// ExitCode is the code with which "rdzv exec" exits when [Run] has returned these values. It is the
// same on every agent of the job, so that a launcher that passes on the first, the largest or the
// bitwise or of its tasks' codes passes on this one.
func ExitCode(r Result, err error) int {
	if err != nil {
		return errorCode(err)
	}
	v := r.Verdict
	if v == nil {
		return CodeLost // no verdict reached this agent: the store was lost first
	}
	switch v.Kind {
	case rdzv.Done:
		return 0
	case rdzv.Failed:
		return v.Code
	case rdzv.Ended:
		if !r.Settled && !r.Withdrawn {
			return CodeSignal + int(v.Signal)
		}
		return r.Code
	case rdzv.Stopped:
		return CodeSignal + int(syscall.SIGTERM)
	case rdzv.Unready:
		return unreadyCode(v.Problems)
	case rdzv.Incomplete:
		return CodeIncomplete
	case rdzv.Straggling:
		return CodeStraggling
	case rdzv.Stalled:
		return CodeStalled
	default:
		return CodeLost
	}
}

// errorCode is the exit code of an agent that never was a member of a job.
func errorCode(err error) int {
	var late *JoinTimeoutError
	var signal *SignalError
	var problem *ProblemError
	var launcher *LauncherDiedError
	var task *TaskLostError
	switch {
	case errors.As(err, &late):
		return CodeIncomplete
	case errors.As(err, &signal) && signal.Withdrawn && signal.InStep:
		return 0
	case errors.As(err, &signal):
		return CodeSignal + int(signal.Signal)
	case errors.As(err, &problem):
		return CodeUnready
	case errors.As(err, &launcher), errors.As(err, &task):
		return CodeLost
	}
	return CodeAgent
}

// unreadyCode is the highest of the problems' codes, so that the order in which members join does
// not matter.
func unreadyCode(problems []rdzv.NodeProblem) int {
	code := CodeUnready
	for _, p := range problems {
		code = max(code, problemCode(p.Kind))
	}
	return code
}

// problemCode is the exit code for a problem of this kind.
func problemCode(kind rdzv.ProblemKind) int {
	switch kind {
	case rdzv.AgentProblem:
		return CodeAgent
	case rdzv.ProgramMissing:
		return CodeMissing
	case rdzv.ProgramNotExecutable:
		return CodeNotExecutable
	}
	return CodeUnready
}

// Hint returns a suggestion for the user about an error of [Plan] or [Run], or about any error with
// a method Hint; "" if none is known.
func Hint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	if notFound, ok := errors.AsType[*meet.NotFoundError](err); ok {
		return notFound.Hint
	}
	if e, ok := errors.AsType[*envmap.Error](err); ok {
		return e.Hint
	}
	return ""
}

// refused is err with a suggestion if the job has no place for this agent, otherwise nil.
func refused(err error, job string) error {
	_, occupied := errors.AsType[*rdzv.OccupiedError](err)
	version, isVersion := errors.AsType[*rdzv.OtherVersionError](err)
	switch {
	case isVersion:
		return hint.With(fmt.Errorf("cannot join job %q: %w", job, err), version.Hint())
	case !occupied && !errors.Is(err, rdzv.ErrFull):
		return nil
	}
	advice := "too many agents were started, or two jobs have the same name: " +
		"give each its own --job NAME"
	if occupied {
		advice = "if these are two jobs, give each its own --job NAME; " +
			"if they are one, give each agent its own --node-rank"
	}
	return hint.With(fmt.Errorf("cannot join job %q: %w", job, err), advice)
}

// withProblem appends err, unless it is nil.
func withProblem(problems []rdzv.Problem, err error) []rdzv.Problem {
	if err == nil {
		return problems
	}
	p := rdzv.Problem{Kind: rdzv.OtherProblem, Text: err.Error(), Hint: Hint(err)}
	find, isFind := errors.AsType[*wrap.FindError](err)
	start, isStart := errors.AsType[*program.StartError](err)
	switch {
	case isFind && find.ExitCode() == CodeMissing, isStart && start.Missing != "":
		p.Kind = rdzv.ProgramMissing
	case isFind, isStart:
		p.Kind = rdzv.ProgramNotExecutable
	}
	return append(problems, p)
}

// ProblemError is a problem of this node that prevents this agent even from joining: a limit is too
// low, or it would have to host the store, and cannot.
type ProblemError struct{ Err error }

func (e *ProblemError) Error() string { return e.Err.Error() }
func (e *ProblemError) Unwrap() error { return e.Err }
