package agent

import (
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/exitcode"
	"rdzv/rdzv/restart"
)

// The JSON forms of the events of a job's end.

type workerForm struct {
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

func workerFormOf(w rdzv.Worker) workerForm {
	return workerForm{
		w.Rank, w.LocalRank, w.PID, exitcode.Of(w.Code, w.Signal), exitcode.SignalName(w.Signal),
		w.Stopped, w.RanFor.Seconds(), w.Text,
	}
}

type rosterForm struct {
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

type stragglersForm struct {
	// rank of the worker that succeeded first
	First        int     `json:"first_rank"`
	AfterSeconds float64 `json:"after_seconds"` // how long ago
	// workers that are still running, the first 8
	Running     []rdzv.Straggler `json:"running"`
	MoreRunning int              `json:"more_running,omitempty"` // how many others are still running
}

func stragglersFormOf(s rdzv.Stragglers) stragglersForm {
	return stragglersForm{s.First, s.After.Seconds(), s.Running, s.More}
}

type jobEndedForm struct {
	Job string `json:"job"` // name of the job
	// how the job ended, the same on every agent; null if the store was lost before there was a
	// verdict
	Verdict *verdictForm `json:"verdict"`
	// whether the store is in this process
	Hosting bool `json:"hosting"`
	// whether this agent leads the job: it hosts the store, or was elected in an etcd cluster
	Leads bool `json:"leads"`
	// whether the verdict is about this agent or a worker of it
	Own bool `json:"own"`
	// whether this agent tells the user: under a launcher, one agent of each node does
	Announce bool `json:"announce"`
	// node of the agent that hosts the store
	StoreHost string `json:"store_host,omitempty"`
	// first rank of that agent
	StoreRank int `json:"store_rank"`
	// how long that agent was silent before it counted as lost
	StoreSilentSeconds float64 `json:"store_silent_seconds,omitempty"`
	// URLs of the etcd cluster that is the store
	Etcd      string `json:"etcd,omitempty"`
	StoreLost string `json:"store_lost,omitempty"` // why the store was lost

	// `lost` with `--max-restarts`: why no other attempt follows, as in `failure_reported`
	NoRestart restart.Reason `json:"no_restart,omitempty"`
	Hint      string         `json:"hint,omitempty"` // what to try
}

type verdictForm struct {
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
	Roster *rosterForm `json:"roster,omitempty"`
	// `straggling`: as in the event `stragglers`
	Stragglers *stragglersForm `json:"stragglers,omitempty"`
	// `stalled`: as in the event `stalled`
	Stall *stallForm `json:"stall,omitempty"`
}

func verdictFormOf(v *rdzv.Verdict) *verdictForm {
	if v == nil {
		return nil
	}
	f := &verdictForm{
		Kind: string(v.Kind), Text: v.Error(), Host: v.Host, PID: v.PID,
		Rank: v.Rank, LocalRank: v.LocalRank, Ranks: v.Ranks,
		SilentSeconds: v.Silent.Seconds(), Signal: exitcode.SignalName(v.Signal),
		RanSeconds: v.RanFor.Seconds(), Problems: v.Problems, MoreProblems: v.MoreProblems,
		Roster: (*rosterForm)(v.Roster),
	}
	if v.Kind == rdzv.Failed {
		f.ExitCode, f.Message = exitcode.Of(v.Code, v.Signal), v.Text
	}
	if v.Stragglers != nil {
		f.Stragglers = new(stragglersFormOf(*v.Stragglers))
	}
	if v.Stall != nil {
		f.Stall = new(stallFormOf(*v.Stall))
	}
	return f
}

type attemptFailedForm struct {
	Attempt int `json:"attempt"` // which attempt has failed; 0 is the first
	// `failed` or `lost`, as in `job_ended`; `ended` if an agent leaves
	Kind string `json:"kind"`
	Text string `json:"text"` // what happened, in words
	// node of the worker that failed first, or of the agent that was lost or leaves
	Host       string  `json:"host"`
	Rank       int     `json:"rank"`              // its rank, or the first rank of the agent
	LocalRank  int     `json:"local_rank"`        // its local rank
	PID        int     `json:"pid"`               // its process ID; 0 if it could not be started
	ExitCode   int     `json:"exit_code"`         // `failed`: its exit code, 128+n for signal n
	Signal     string  `json:"signal,omitempty"`  // the signal that ended it
	RanSeconds float64 `json:"ran_seconds"`       // `failed`: from its start to its end
	Message    string  `json:"message,omitempty"` // one line on the failure
	// whether it is about this agent or a worker of it
	Own bool `json:"own"`
	// whether this agent tells the user: under a launcher, the one that hosts the store does
	Announce bool `json:"announce"`

	// the worker has lost its connection to another one, whose agent may be lost
	MayBeConsequence bool `json:"may_be_consequence,omitempty"`
}

func attemptFailedFormOf(e AttemptFailed) attemptFailedForm {
	form := attemptFailedForm{
		Attempt: e.Attempt, Own: e.Own, Announce: e.Announce, MayBeConsequence: e.MayBeConsequence,
	}
	if v := e.Verdict; v != nil {
		form.Kind, form.Text = string(v.Kind), v.Error()
		form.Host, form.Rank, form.LocalRank, form.PID = v.Host, v.Rank, v.LocalRank, v.PID
		form.Signal, form.RanSeconds = exitcode.SignalName(v.Signal), v.RanFor.Seconds()
		if v.Kind == rdzv.Failed {
			form.ExitCode, form.Message = exitcode.Of(v.Code, v.Signal), v.Text
		}
	}
	return form
}

type restartingForm struct {
	Attempt int `json:"attempt"` // which attempt begins
	// how many attempts there may be after the first one
	MaxRestarts int `json:"max_restarts"`
	// how long the agents wait before they start the workers
	DelaySeconds float64 `json:"delay_seconds"`

	// nodes whose agents are lost: the others wait for agents in their place
	Vacant []layoutForm `json:"vacant,omitempty"`
	// how many more agents the attempt needs than are left, in a job with a variable number of
	// nodes
	Missing   int  `json:"missing_agents,omitempty"`
	Withdrawn bool `json:"withdrawn,omitempty"` // this agent leaves the job
	Announce  bool `json:"announce"`            // as in `attempt_failed`
}

type settlingForm struct {
	// workers of this agent that have not ended
	Running []WorkerStarted `json:"running,omitempty"`
	// other processes that its workers have left
	Left []processForm `json:"left,omitempty"`
	// how long after the end of the job they get SIGKILL
	WaitSeconds float64 `json:"wait_seconds"`
}

type processForm struct {
	PID     int    `json:"pid"`     // process ID of one
	Command string `json:"command"` // its command name
}

func settlingFormOf(e Settling) settlingForm {
	form := settlingForm{Running: e.Running, WaitSeconds: e.Wait.Seconds()}
	for _, p := range e.Left {
		form.Left = append(form.Left, processForm{p.PID, p.Name})
	}
	return form
}

type failureForm struct {
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
	ExitCode int    `json:"exit_code"`
	Signal   string `json:"signal,omitempty"` // the signal that ended it
	// whether it was killed by SIGKILL and the kernel ran out of memory meanwhile
	OutOfMemory bool    `json:"out_of_memory"`
	RanSeconds  float64 `json:"ran_seconds"`       // from its start to its end
	Message     string  `json:"message,omitempty"` // one line on the failure
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
	Others []otherFailedForm `json:"others,omitempty"`
	// workers that exited with 0 at most 2 s before; the failure may be the consequence
	Successes *successesForm `json:"successes,omitempty"`
	// in which attempt it failed, if not in the first
	Attempt int `json:"attempt,omitempty"`
	// with `--max-restarts`: why no other attempt follows: `max_restarts` (this was the last one),
	// `exit_code` (one after which there is none), `same_message` (two attempts failed early with
	// the same message), `agent_missing` (an agent was lost, or could not stop its workers in
	// time), `mpi` (the workers are MPI programs, which the launcher can start only once)
	NoRestart restart.Reason `json:"no_restart,omitempty"`
}

type successesForm struct {
	Ranks     []int `json:"ranks"`                // their ranks, the first 8
	MoreRanks int   `json:"more_ranks,omitempty"` // how many others there are
	// how long before the failure the first of them exited
	BeforeSeconds float64 `json:"before_seconds"`
}

type otherFailedForm struct {
	Host string `json:"host"` // node of one
	workerForm
}

func failureFormOf(f Failure) failureForm {
	form := failureForm{
		Job: f.Job, Program: f.Program, WorldSize: f.WorldSize, Host: f.Host,
		Rank: f.Rank, LocalRank: f.LocalRank, PID: f.PID,
		ExitCode: exitcode.Of(f.Code, f.Signal), Signal: exitcode.SignalName(f.Signal),
		OutOfMemory: f.OOM, RanSeconds: f.Took.Seconds(), Message: f.Message, Stderr: f.Stderr,
		OnTerminal: f.OnTerminal, Joined: f.Joined, Log: f.Log, Hint: f.Hint,
		Attempt: f.Attempt, NoRestart: f.NoRestart,
	}
	if s := f.Successes; s != nil {
		form.Successes = &successesForm{s.Ranks, s.More, s.Before.Seconds()}
	}
	for _, o := range f.Others {
		form.Others = append(form.Others, otherFailedForm{o.Host, workerFormOf(o.Worker)})
	}
	return form
}
