package agent

import (
	"fmt"

	"rdzv/envmap"
	"rdzv/internal/plural"
	"rdzv/rdzv"
	"rdzv/rdzv/meet"
)

// Event is something that happened to this agent or its job. Its types are those of this file,
// eventattempt.go and eventend.go. docs/reference/events.md is made of their comments and shows the
// JSON form of each, see [MarshalEvent]. Those that people are told have a method String, whose
// text is what "rdzv exec" prints.
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

func (Placed) Type() string { return "placed" }

func (e Placed) String() string {
	if e.Launcher == envmap.None {
		return fmt.Sprintf("no launcher: job %s, %s", e.Job, plural.Of(e.Agents, "agent"))
	}
	also := ""
	if e.Others != "" {
		also = ", with the workers of the other tasks of this node: " + e.Others
	}
	return fmt.Sprintf("started by %s: job %s, rank %d of %d%s",
		e.Launcher, e.Job, e.Rank, e.Size, also)
}

// FlagIgnored says that a setting has no effect, because the launcher decides or the job has one
// node. Only the agent of the launcher's rank 0 reports it, or each one if the launcher gives no
// ranks.
type FlagIgnored struct {
	// the flag of rdzv exec, such as `--nodes`, with its value
	Flag   string `json:"flag"`
	Reason string `json:"reason"` // why it has no effect
}

func (FlagIgnored) Type() string { return "flag_ignored" }

func (e FlagIgnored) String() string { return "ignoring " + e.Flag + ": " + e.Reason }

// Unprotected says that the job runs without a key (`--insecure`): whoever can connect to the
// store can take part. The same agents as for [FlagIgnored] report it.
type Unprotected struct{}

func (Unprotected) Type() string { return "unprotected" }

func (Unprotected) String() string {
	return "--insecure: connections are neither authenticated nor encrypted: " +
		"anyone who can reach the nodes can join this job"
}

// TokenCreated says that there was no token yet: this agent has created one.
type TokenCreated struct {
	// path of the token; nodes on which that is another file need a copy of it
	File string `json:"file"`
}

func (TokenCreated) Type() string { return "token_created" }

func (e TokenCreated) String() string {
	return "created the token " + e.File +
		"; nodes that do not share this file cannot join without a line that follows"
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
	// Addrs are all addresses of a store that this agent hosts.
	Addrs []string `json:"-"`
}

func (StoreFound) Type() string { return "store_found" }

func (e StoreFound) String() string {
	switch {
	case e.Hosting && e.Addr == "":
		return "hosting the store, for this agent alone"
	case e.Hosting:
		return "hosting the store at " + e.Addr
	}
	return "connected to the store at " + e.Addr + " from " + e.Own
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

func (EnvironmentNote) Type() string { return "environment_note" }

func (e EnvironmentNote) String() string { return e.Text }

// Diagnostic is an error that does not change how the job proceeds.
type Diagnostic struct {
	// `warning` for everybody, `verbose` for people who ask for details
	Severity Severity `json:"severity"`
	Err      error    `json:"-"`
	Text     string   `json:"text"` // the error
}

func (Diagnostic) Type() string { return "diagnostic" }

func (e Diagnostic) String() string { return e.Text }

// Severity says who should see a [Diagnostic].
type Severity string

const (
	Verbose Severity = "verbose" // only people who ask for details
	Warning Severity = "warning" // everybody
)
