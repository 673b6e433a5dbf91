package agent

import (
	"os"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/meet"
	"rdzv/rdzv/restart"
	"rdzv/rdzv/stacks"
	"rdzv/wrap"
)

// Event is something that happened to this agent or its job. The types of this file are all there
// are. docs/reference/events.md is made of their comments and shows the JSON form of each, see
// [MarshalEvent].
//
// An agent that runs its workers to the end of the job reports, in this order: [Placed],
// [StoreFound], [WorldAgreed], [WorkerStarted] and [WorkerExited] of each worker, with [JobEnded]
// among the latter, or [AttemptFailed], after which [Restarting] leads back to WorldAgreed;
// [FailureReported] if a worker of this agent failed first, [Finished]. The other
// events come whenever there is a reason for them.
type Event interface {
	// Type is the name of the event in its JSON form, such as "worker_exited".
	Type() string
}

// What package meet and the leader of the job tell.
type (
	Searching        = meet.Searching
	NoPeerYet        = meet.NoPeerYet
	DifferentToken   = meet.DifferentToken
	DifferentVersion = meet.DifferentVersion
	DifferentCommand = meet.DifferentCommand
	DifferentStore   = meet.DifferentStore
	RanksMissing     = meet.RanksMissing
	NoMulticast      = meet.NoMulticast

	Waiting     = rdzv.Waiting
	NodesDiffer = rdzv.NodesDiffer
	Stragglers  = rdzv.Stragglers
)

// Placed says what the launcher and the flags determine about this agent. Every agent reports it
// first, before it looks for the others.
type Placed struct {
	Host string `json:"host"` // name of this node
	PID  int    `json:"pid"`  // process ID of the agent
	// the launcher that was recognised; `none` if there is none
	Launcher envmap.Launcher `json:"launcher"`
	Job      string          `json:"job"`     // name of the job
	Agents   int             `json:"agents"`  // number of agents of the job
	Rank     int             `json:"task"`    // the launcher's rank of this task
	Size     int             `json:"tasks"`   // how many tasks the launcher started
	Workers  int             `json:"workers"` // number of workers of this agent
	// the launcher's ranks of other tasks of this node whose workers this agent runs too, such as
	// `1-7`; left out if there are none
	Others string `json:"other_tasks,omitempty"`
}

// FlagIgnored says that a setting has no effect, because the launcher decides or the job has one
// node. Only the agent of the launcher's rank 0 reports it, or each one if the launcher gives no
// ranks.
type FlagIgnored struct {
	// the flag of rdzv exec, such as `--nodes`, with its value
	Flag   string `json:"flag"`
	Reason string `json:"reason"` // why it has no effect
}

// Unprotected says that the job runs without a key (`--insecure`): whoever can connect to the
// store can take part. The same agents as for [FlagIgnored] report it.
type Unprotected struct{}

// TokenCreated says that there was no token yet: this agent has created one.
type TokenCreated struct {
	// path of the token; nodes on which that is another file need a copy of it
	File string `json:"file"`
}

// StoreFound says that this agent is connected to the store, or hosts it. Every agent reports it,
// and reports it again if the agents change to another store before the world is agreed.
type StoreFound struct {
	Hosting bool `json:"hosting"` // whether the store is in this process
	// whether this agent leads the job: it hosts the store, or was elected in an etcd cluster
	Leads bool `json:"leads"`
	// address and port of the store, if other agents can connect to it, or the URLs of the etcd
	// cluster
	Addr string `json:"store_addr,omitempty"`
	Own  string `json:"own_addr,omitempty"` // this agent's own address on the connection
}

// WorldAgreed says that all agents have joined, and this agent is about to start its workers. Every
// agent reports it, unless the job ends before.
type WorldAgreed struct {
	rdzv.World
	// Announce says that this agent tells the user who has taken over the ranks of lost agents.
	Announce bool `json:"-"`
}

// EnvironmentNote says that a variable of the workers was replaced, will not work, or was set for a
// reason that is not obvious. It also names exported variables, without their values, and says to
// which NUMA node a worker is bound, or why not. It is reported before the workers start: what was
// replaced by rank 0's agent, everything else by one agent of each node.
type EnvironmentNote struct {
	// what was replaced, why it will not work, why it was set, or where a worker is bound
	Text string `json:"text"`
	// true if the note is only for people who ask for details
	Verbose bool `json:"verbose,omitempty"`
}

// WorkerStarted says that a worker of this agent runs. If the program of a worker cannot be
// executed, only [WorkerExited] is reported.
type WorkerStarted struct {
	Rank      int `json:"rank"`       // its rank
	LocalRank int `json:"local_rank"` // its local rank
	PID       int `json:"pid"`        // its process ID
}

// WorkerExited says how a worker of this agent ended. It comes before [JobEnded] if the job ended
// because of it, and after JobEnded if the worker was stopped because the job had ended.
type WorkerExited struct {
	rdzv.Worker
}

// InitProgress says which ranks have not reached torch's init_process_group although rank 0 has,
// after 10 s, 1 min and 5 min if ranks are missing then, and once more when all ranks have reached
// it. With `rank0_absent` it says, once, that rank 0 does not listen on MASTER_PORT 30 s after it
// was seen to load torch. Rank 0's agent reports it; without a launcher the agent that leads the
// job reports it too, if it is on another node.
type InitProgress struct {
	rdzv.InitProgress
}

// Stalled says that the workers of the attempt make no progress (`--stall-timeout`). The event
// has the stacks of the ranks. Rank 0's agent reports it, before [JobEnded] or [AttemptFailed] if
// the attempt ends because of it.
type Stalled struct {
	rdzv.Stall
	Attempt int `json:"attempt"` // number of the attempt; 0 is the first
	// number of the stall in the attempt; 1 is the first
	Number  int          `json:"number"`
	Timeout rdzv.Seconds `json:"timeout_seconds"` // `--stall-timeout`
	// whether the attempt ends because of it
	Ends bool `json:"ends"`
	// the file with the report, with `--log-dir`
	File   string        `json:"file,omitempty"`
	Stacks stacks.Report `json:"-"`
}

// JobEnded says how the job ended. Every agent reports it once, as soon as it knows. Its workers
// may still be running then, and are stopped.
type JobEnded struct {
	Job string `json:"job"` // name of the job
	// how the job ended, the same on every agent; null if the store was lost before there was a
	// verdict
	Verdict *rdzv.Verdict `json:"verdict"`
	// whether the store is in this process
	Hosting bool `json:"hosting"`
	// whether this agent leads the job: it hosts the store, or was elected in an etcd cluster
	Leads  bool `json:"leads"`
	Agreed bool `json:"-"` // the world was agreed
	// whether the verdict is about this agent or a worker of it
	Own bool `json:"own"`
	// whether this agent tells the user: under a launcher, one agent of each node does
	Announce bool `json:"announce"`
	// node of the agent that hosts the store
	StoreHost string `json:"store_host,omitempty"`
	// first rank of that agent
	StoreRank int `json:"store_rank"`
	// how long that agent was silent before it counted as lost
	StoreSilent rdzv.Seconds `json:"store_silent_seconds,omitempty"`
	// URLs of the etcd cluster that is the store
	Etcd      string `json:"etcd,omitempty"`
	StoreLost string `json:"store_lost,omitempty"` // why the store was lost

	// `lost` with `--max-restarts`: why no other attempt follows, as in `failure_reported`
	NoRestart restart.Reason `json:"no_restart,omitempty"`
	Attempt   int            `json:"-"`              // the last one, with NoRestart
	Hint      string         `json:"hint,omitempty"` // what to try
}

// AttemptFailed says that a worker failed, an agent was lost, or an agent leaves, in a job whose
// workers may be started again (`--max-restarts`). Every agent reports it instead of [JobEnded], as
// soon as it knows. When all agents have settled, [Restarting] follows, or JobEnded if there is no
// other attempt. It also has the fields that the verdict of JobEnded has; `kind` is `failed`,
// `lost`, `stalled`, or `ended` if an agent leaves.
type AttemptFailed struct {
	Attempt int           `json:"attempt"` // which attempt has failed; 0 is the first
	Verdict *rdzv.Verdict `json:"-"`       // its fields are those of the event
	// whether it is about this agent or a worker of it
	Own bool `json:"own"`
	// whether this agent tells the user: under a launcher, the one that hosts the store does
	Announce bool `json:"announce"`
	// the worker has lost its connection to another one, whose agent may be lost; if it is, another
	// `attempt_failed` says so when all agents have settled
	MayBeConsequence bool `json:"may_be_consequence,omitempty"`
}

// Restarting says that all workers of the job are about to be started again. Every agent reports
// it, when all agents have settled; [WorldAgreed] follows unless the job ends before.
type Restarting struct {
	rdzv.Restart
	// how many attempts there may be after the first one
	MaxRestarts int  `json:"max_restarts"`
	Withdrawn   bool `json:"withdrawn,omitempty"` // this agent leaves the job
	Announce    bool `json:"announce"`            // as in `attempt_failed`
}

// Settling says that not all agents have settled 1 s after the end of the job or of an attempt.
// Every agent reports it, at most once for each.
type Settling struct {
	// workers of this agent that have not ended
	Running []WorkerStarted `json:"running,omitempty"`
	// other processes that its workers have left
	Left []wrap.Process `json:"left,omitempty"`
	// how long after the end of the job they get SIGKILL
	Wait rdzv.Seconds `json:"wait_seconds"`
}

// DumpingStacks says that workers of this agent, which have not ended in time, print their stacks
// and are then killed. The agent reports it before they do.
type DumpingStacks struct {
	Workers     []WorkerStarted `json:"workers"`         // the workers
	IgnoresTerm bool            `json:"ignores_sigterm"` // whether all of them ignore SIGTERM
	Stderr      *os.File        `json:"-"`               // where; nil is stderr of this process
}

// LogLost says that a log of this agent could not be written, and is not written any more. The
// agent reports it when it happens, and again, with the number of bytes, when the worker and its
// descendants have ended.
type LogLost struct {
	Rank int    `json:"rank"` // of the worker
	File string `json:"file"` // its log
	Err  error  `json:"-"`
	Text string `json:"text"` // the reason
	// the second time: how many bytes of the worker's output are not in the file
	Bytes int64 `json:"bytes,omitempty"`
}

// OutputLost says that some of the output of a worker could not be shown, for example because
// stdout of the agent is a file on a full disk. The agent reports it once for each stream of a
// worker, at its end. Without a log, the worker's writes to stdout have failed since then.
type OutputLost struct {
	Rank   int    `json:"rank"`          // of the worker
	Stream string `json:"stream"`        // `stdout`, or `stderr`
	Err    error  `json:"-"`             // the first reason
	Text   string `json:"text"`          // the first reason
	Bytes  int64  `json:"bytes"`         // how many bytes of the worker's output were not shown
	Log    string `json:"log,omitempty"` // the log that has them (`--log-dir`)
}

// Failure describes the worker that failed first, see [FailureReported]. Stderr, OOM and Hint are
// known only to the agent of that worker.
type Failure struct {
	Job string `json:"job"` // name of the job
	// the program and its arguments
	Program []string `json:"program"`
	// number of workers of the job
	WorldSize int    `json:"world_size"`
	Host      string `json:"host"`       // node of the worker
	Rank      int    `json:"rank"`       // its rank
	LocalRank int    `json:"local_rank"` // its local rank
	// its process ID; 0 if it could not be started
	PID int `json:"pid"`
	// its exit code, 128+n for signal n
	Code   int         `json:"exit_code"`
	Signal rdzv.Signal `json:"signal,omitempty"` // the signal that ended it
	// whether it was killed by SIGKILL and the kernel ran out of memory meanwhile
	OOM     bool         `json:"out_of_memory"`
	Took    rdzv.Seconds `json:"ran_seconds"`       // from its start to its end
	Message string       `json:"message,omitempty"` // one line on the failure
	// its last lines of stderr, or its traceback
	Stderr []string `json:"stderr,omitempty"`
	// its stderr was a terminal, where it has been shown, and was not captured
	OnTerminal bool `json:"stderr_on_terminal,omitempty"`
	// the lines in `stderr` are those of stdout and stderr, which were one pipe (`--log-dir`)
	Joined bool `json:"stderr_with_stdout,omitempty"`
	// the file that has its output
	Log  string `json:"log,omitempty"`
	Hint string `json:"hint,omitempty"` // what to try
	// other workers that failed before they were told to stop
	Others []rdzv.FailedWorker `json:"others,omitempty"`
	// workers that exited with 0 at most 2 s before; the failure may be the consequence
	Successes *rdzv.Successes `json:"successes,omitempty"`
	// in which attempt it failed, if not in the first
	Attempt int `json:"attempt,omitempty"`
	// with `--max-restarts`: why no other attempt follows: `max_restarts` (this was the last one),
	// `exit_code` (one after which there is none), `same_message` (two attempts failed early with
	// the same message), `import` (the first attempt failed early because of an import),
	// `agent_missing` (an agent was lost, or could not stop its workers in time), `mpi` (the workers
	// are MPI programs, which the launcher can start only once)
	NoRestart restart.Reason `json:"no_restart,omitempty"`
}

// FailureReported describes the worker that failed first. The agent of that worker reports it, when
// all agents have settled. If that agent is lost, another one reports it, without the lines of
// stderr, unless it has announced the failure ([JobEnded]).
type FailureReported struct {
	Failure
}

// Diagnostic is an error that does not change how the job proceeds.
type Diagnostic struct {
	// `warning` for everybody, `verbose` for people who ask for details
	Severity Severity `json:"severity"`
	Err      error    `json:"-"`
	Text     string   `json:"text"` // the error
}

// Severity says who should see a [Diagnostic].
type Severity string

const (
	Verbose Severity = "verbose" // only people who ask for details
	Warning Severity = "warning" // everybody
)

// Finished is the last event of every agent. All agents of the job have settled, or there was no
// job; no process of this agent's workers is left; and Run returns.
type Finished struct {
	// the code with which `rdzv exec` exits, the same on every agent of the job
	ExitCode int    `json:"exit_code"`
	Err      error  `json:"-"`              // of Run
	Text     string `json:"text,omitempty"` // the error of an agent that never joined
	Hint     string `json:"hint,omitempty"` // what to try about it
}

func (Placed) Type() string          { return "placed" }
func (FlagIgnored) Type() string     { return "flag_ignored" }
func (Unprotected) Type() string     { return "unprotected" }
func (TokenCreated) Type() string    { return "token_created" }
func (StoreFound) Type() string      { return "store_found" }
func (WorldAgreed) Type() string     { return "world_agreed" }
func (EnvironmentNote) Type() string { return "environment_note" }
func (WorkerStarted) Type() string   { return "worker_started" }
func (WorkerExited) Type() string    { return "worker_exited" }
func (InitProgress) Type() string    { return "init_progress" }
func (Stalled) Type() string         { return "stalled" }
func (JobEnded) Type() string        { return "job_ended" }
func (AttemptFailed) Type() string   { return "attempt_failed" }
func (Restarting) Type() string      { return "restarting" }
func (Settling) Type() string        { return "settling" }
func (DumpingStacks) Type() string   { return "dumping_stacks" }
func (LogLost) Type() string         { return "log_lost" }
func (OutputLost) Type() string      { return "output_lost" }
func (FailureReported) Type() string { return "failure_reported" }
func (Diagnostic) Type() string      { return "diagnostic" }
func (Finished) Type() string        { return "finished" }
