package form

import (
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/exitcode"
)

// The JSON forms of the events of a job's end.

// Worker is the end of a worker.
type Worker struct {
	Rank      int `json:"rank"`       // its rank
	LocalRank int `json:"local_rank"` // its local rank
	PID       int `json:"pid"`        // its process ID; 0 if it could not be started
	// its exit code, as a shell shows it: 128+n for signal n
	ExitCode int    `json:"exit_code"`
	Signal   string `json:"signal,omitempty"` // the signal that ended it
	// whether it was told to stop before it ended; it has not failed by itself then
	Stopped    bool    `json:"stopped"`
	RanSeconds float64 `json:"ran_seconds"` // from its start to its end
	// one line on its failure, from its stderr or its error file
	Message string `json:"message,omitempty"`
}

// WorkerOf makes the form.
func WorkerOf(w rdzv.Worker) Worker {
	return Worker{
		w.Rank, w.LocalRank, w.PID, exitcode.Of(w.Code, w.Signal), exitcode.SignalName(w.Signal),
		w.Stopped, w.RanFor.Seconds(), w.Text,
	}
}

// Roster is the agents that have joined, and those that have not.
type Roster struct {
	Joined int `json:"joined"` // number of agents that have joined
	Agents int `json:"agents"` // number of agents of the job
	// the smallest number, if it varies; `agents` is the largest then
	Min int `json:"min_agents,omitempty"`
	// the launcher's ranks that are missing, the first 8; left out without a launcher
	Missing []int `json:"missing_tasks,omitempty"`

	// in a job without a launcher whose nodes all have a `--node-rank`, those that are missing,
	// the first 8
	MissingNodes []int `json:"missing_nodes,omitempty"`

	// nodes of the agents that have joined, the first 8
	Hosts     []string `json:"hosts,omitempty"`
	MoreHosts int      `json:"more_hosts,omitempty"` // how many other nodes there are

	// nodes of the missing ranks, the first 8, if the launcher tells and no agent has joined from
	// them
	Absent     []string `json:"absent_hosts,omitempty"`
	MoreAbsent int      `json:"more_absent_hosts,omitempty"` // how many other such nodes there are

	// agents that could not join because their tokens differ, the first 8
	Refused     []string `json:"refused,omitempty"`
	MoreRefused int      `json:"more_refused,omitempty"` // how many other such agents there are

	// agents that could not join because of another version of rdzv, the first 8
	OtherVersion []string `json:"other_version,omitempty"`
	// how many other such agents there are
	MoreOtherVersion int `json:"more_other_version,omitempty"`

	// agents that have connected and wait for files that do not respond, the first 8
	Waiting     []string `json:"waiting,omitempty"`
	MoreWaiting int      `json:"more_waiting,omitempty"` // how many other such agents there are
	Unattended  bool     `json:"-"`
}

// Stragglers is workers that run long after another one succeeded.
type Stragglers struct {
	// rank of the worker that succeeded first
	First        int     `json:"first_rank"`
	AfterSeconds float64 `json:"after_seconds"` // how long ago
	// workers that are still running, the first 8
	Running     []rdzv.Straggler `json:"running"`
	MoreRunning int              `json:"more_running,omitempty"` // how many others are still running
}

// StragglersOf makes the form.
func StragglersOf(s rdzv.Stragglers) Stragglers {
	return Stragglers{s.First, s.After.Seconds(), s.Running, s.More}
}

// Verdict is how a job or an attempt ended.
type Verdict struct {
	// `done`: all workers succeeded. `failed`: a worker failed first. `ended`: a signal to an
	// agent ended the job. `stopped`: `rdzv stop` ended it. `lost`: an agent, its launcher or its
	// holder was lost. `unready`: a check failed, no worker was started. `incomplete`: not all
	// agents joined in time. `straggling`: workers were still running too long after another one
	// succeeded. `stalled`: all workers ran and none made progress (`--stall-timeout`)
	Kind string `json:"kind"`
	Text string `json:"text"` // the verdict in words
	// node of the agent that it is about
	Host string `json:"host,omitempty"`
	// process ID of the worker if the kind is `failed`, else of the agent
	PID int `json:"pid,omitempty"`
	// rank of the worker, or the first rank of the agent
	Rank      int `json:"rank"`
	LocalRank int `json:"local_rank"` // its local rank
	// `lost`: number of workers of the agent
	Ranks int `json:"ranks,omitempty"`
	// `lost`: how long the agent was silent; left out if its connection was closed
	SilentSeconds float64 `json:"silent_seconds,omitempty"`
	// `failed`: the worker's exit code, 128+n for signal n
	ExitCode int `json:"exit_code,omitempty"`
	// the signal that ended the worker, or the job
	Signal string `json:"signal,omitempty"`
	// `failed`: from the worker's start to its end
	RanSeconds float64 `json:"ran_seconds,omitempty"`
	// `failed`: one line on the worker's failure
	Message string `json:"message,omitempty"`
	// `unready` and `incomplete`: what kept agents from running their workers, the first 8
	Problems []rdzv.NodeProblem `json:"problems,omitempty"`
	// how many other problems there are
	MoreProblems int `json:"more_problems,omitempty"`
	// `incomplete`: which agents joined
	Roster *Roster `json:"roster,omitempty"`
	// `straggling`: as in the event `stragglers`
	Stragglers *Stragglers `json:"stragglers,omitempty"`
	// `stalled`: as in the event `stalled`
	Stall *Stall `json:"stall,omitempty"`
}

// VerdictOf makes the form.
func VerdictOf(v *rdzv.Verdict) *Verdict {
	if v == nil {
		return nil
	}
	f := &Verdict{
		Kind: string(v.Kind), Text: v.Error(), Host: v.Host, PID: v.PID,
		Rank: v.Rank, LocalRank: v.LocalRank, Ranks: v.Ranks,
		SilentSeconds: v.Silent.Seconds(), Signal: exitcode.SignalName(v.Signal),
		RanSeconds: v.RanFor.Seconds(), Problems: v.Problems, MoreProblems: v.MoreProblems,
		Roster: (*Roster)(v.Roster),
	}
	if v.Kind == rdzv.Failed {
		f.ExitCode, f.Message = exitcode.Of(v.Code, v.Signal), v.Text
	}
	if v.Stragglers != nil {
		f.Stragglers = new(StragglersOf(*v.Stragglers))
	}
	if v.Stall != nil {
		f.Stall = new(StallOf(*v.Stall))
	}
	return f
}

// Process is a process.
type Process struct {
	PID     int    `json:"pid"`     // process ID of one
	Command string `json:"command"` // its command name
}

// Successes is workers that have succeeded.
type Successes struct {
	Ranks     []int `json:"ranks"`                // their ranks, the first 8
	MoreRanks int   `json:"more_ranks,omitempty"` // how many others there are
	// how long before the failure the first of them exited
	BeforeSeconds float64 `json:"before_seconds"`
}
