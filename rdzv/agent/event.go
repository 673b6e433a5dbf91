package agent

import (
	"encoding/json"
	"fmt"
	"time"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/meet"
)

// Event is something that happened to this agent or its job. The types of this file are all there
// are. Their JSON form is stable: a name or the meaning of a field changes only together with
// [SchemaVersion], new fields and types may be added.
type Event interface {
	// Type is the name of the event in its JSON form, such as "worker_exited".
	Type() string
}

// SchemaVersion is the version of the JSON form of events, see [MarshalEvent].
const SchemaVersion = 1

// MarshalEvent returns the JSON form of an event: one object without newline, with the members
// "v" ([SchemaVersion]), "time" (RFC 3339, UTC), "type", and "event" with the fields of its type.
func MarshalEvent(at time.Time, e Event) ([]byte, error) {
	b, err := json.Marshal(struct {
		Version int       `json:"v"`
		Time    time.Time `json:"time"`
		Type    string    `json:"type"`
		Event   Event     `json:"event"`
	}{SchemaVersion, at.UTC(), e.Type(), e})
	if err != nil {
		return nil, fmt.Errorf("cannot encode event %q: %w", e.Type(), err)
	}
	return b, nil
}

// Placed says what the launcher and the Config determine about this agent.
type Placed struct {
	Launcher envmap.Launcher `json:"launcher"` // "none" without one
	Job      string          `json:"job"`
	Agents   int             `json:"agents"`  // of the job
	Rank     int             `json:"rank"`    // of the launcher's task, or -1
	Size     int             `json:"size"`    // how many tasks the launcher started, or -1
	Workers  int             `json:"workers"` // of this agent
}

// FlagIgnored says that a setting has no effect because the launcher decides.
type FlagIgnored struct {
	Flag   string `json:"flag"`   // such as "--nodes 3"
	Reason string `json:"reason"` // a sentence
}

// Unprotected says that the job runs without a key (Config.Insecure).
type Unprotected struct{}

// Alone says that no other agent has connected to the store of this agent, which waits for them.
type Alone struct {
	Seconds  float64 `json:"seconds"`
	Store    string  `json:"store,omitempty"` // an address for --store on every node; "" if --store was given
	JoinLine string  `json:"-"`               // RDZV_JOIN=... for other nodes; "" unless Config.ShowJoinLine
}

// DifferentToken says that an agent of the same job was kept out because it has another token.
type DifferentToken struct {
	meet.DifferentToken
}

// DifferentCommand says that an agent of another job was kept out.
type DifferentCommand struct {
	meet.DifferentCommand
}

// RanksMissing says that the launcher has not started all ranks yet, and does not tell which.
type RanksMissing struct {
	meet.RanksMissing
}

// NoMulticast says that this agent cannot look for the others by multicast.
type NoMulticast struct {
	Err  error  `json:"-"`
	Text string `json:"text"`
}

// StoreFound says that this agent has a connection to the job's store.
type StoreFound struct {
	Hosting bool   `json:"hosting"`        // the store is in this process
	Addr    string `json:"addr,omitempty"` // of the store; "" if nobody can connect to it
	Own     string `json:"own,omitempty"`  // this agent's address on the connection
}

// Waiting says which agents have not joined. The leader reports it every few seconds.
type Waiting struct {
	rdzv.Roster
	Seconds float64 `json:"seconds"` // since this agent began to wait
}

// WorldAgreed says that all agents have joined and workers are about to start.
type WorldAgreed struct {
	World rdzv.World `json:"world"`
	Seat  rdzv.Seat  `json:"seat"` // of this agent
}

// EnvironmentNote says that something in the workers' environment was replaced or will not work.
type EnvironmentNote struct {
	Text string `json:"text"` // a sentence
}

// WorkerStarted says that a worker of this agent runs.
type WorkerStarted struct {
	Rank      int `json:"rank"`
	LocalRank int `json:"local_rank"`
	PID       int `json:"pid"`
}

// WorkerExited says how a worker of this agent ended.
type WorkerExited struct {
	rdzv.Worker
}

// Stragglers says which workers still run long after another one succeeded. The leader reports it.
type Stragglers struct {
	rdzv.Stragglers
}

// JobEnded says how the job ended, as soon as this agent learns it; its workers may still run.
type JobEnded struct {
	Job     string        `json:"job"`
	Verdict *rdzv.Verdict `json:"verdict"` // nil if the store was lost before there was one
	Hosting bool          `json:"hosting"` // the store is in this process
	Own     bool          `json:"own"`     // Verdict is about this agent or a worker of it
	// StoreHost and StoreRank name the agent that hosted the store, if the world was agreed.
	StoreHost string `json:"store_host,omitempty"`
	StoreRank int    `json:"store_rank"` // -1 if unknown
}

// FailureReported describes the worker that failed first. It comes once all agents have settled,
// from the agent of that worker.
type FailureReported struct {
	Failure
}

// Diagnostic is an error that does not change how the job proceeds.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Err      error    `json:"-"`
	Text     string   `json:"text"`
}

// Severity says who should see a [Diagnostic].
type Severity string

const (
	Verbose Severity = "verbose" // only people who ask for details
	Warning Severity = "warning" // everybody
)

func (Placed) Type() string           { return "placed" }
func (FlagIgnored) Type() string      { return "flag_ignored" }
func (Unprotected) Type() string      { return "unprotected" }
func (Alone) Type() string            { return "alone" }
func (DifferentToken) Type() string   { return "different_token" }
func (DifferentCommand) Type() string { return "different_command" }
func (RanksMissing) Type() string     { return "ranks_missing" }
func (NoMulticast) Type() string      { return "no_multicast" }
func (StoreFound) Type() string       { return "store_found" }
func (Waiting) Type() string          { return "waiting" }
func (WorldAgreed) Type() string      { return "world_agreed" }
func (EnvironmentNote) Type() string  { return "environment_note" }
func (WorkerStarted) Type() string    { return "worker_started" }
func (WorkerExited) Type() string     { return "worker_exited" }
func (Stragglers) Type() string       { return "stragglers" }
func (JobEnded) Type() string         { return "job_ended" }
func (FailureReported) Type() string  { return "failure_reported" }
func (Diagnostic) Type() string       { return "diagnostic" }
