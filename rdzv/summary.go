package rdzv

import (
	"sync"

	"rdzv/rdzv/restart"
)

// Summary is returned by [Session.Leave]. It describes how the job has ended or, if Restart is set,
// the attempt.
type Summary struct {
	// Verdict is how the job ended; nil if the store was lost before there was one.
	Verdict *Verdict
	// Code is the exit code of a job that a signal ended, otherwise 0. It depends on how the workers
	// reacted to the signal. That of the worker that failed first is Verdict.Code.
	Code int
	// Settled is true if every agent has settled or was lost.
	Settled bool
	// Unsettled names the agents that had not settled at the timeout, for people.
	Unsettled string
	// Unreported is true if the agent whose worker failed first was lost before all had settled, so
	// that another agent must report the failure.
	Unreported bool
	// Successes are the workers that succeeded shortly before the one that failed first; nil if there
	// are none.
	Successes *Successes
	// Disconnected is how many other workers lost their connection to another one.
	Disconnected int
	// Restart is the next attempt, which this agent must join with [Session.Next]; nil if there is
	// none. After a failure in a job with restarts, NoRestart then says why.
	Restart   *Restart
	NoRestart restart.Reason
	// Withdrawn says that Restart is without this agent: it has left the job, see [Session.Withdraw].
	Withdrawn bool
	// Failures are the other workers that failed before they were stopped, in the order
	// of the store. Only the agent that reports the failure has them: the one that the
	// verdict is about, or the host of the store if an agent was lost; see also Config.ReadDetails.
	Failures []FailedWorker
	// Details are those of the workers of agents that have settled. The same agents have them; others
	// may have that of the worker that failed first, see Config.ReadFailure.
	Details []Detail
}

// FailedWorker is a worker that failed, and its node.
type FailedWorker struct {
	Host string `json:"host"` // node of one
	Worker
}

// leaving keeps the results of the first call of Leave, for later calls and for Next.
type leaving struct {
	once    sync.Once
	summary Summary
	err     error
}
