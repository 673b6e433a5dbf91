package agent

import (
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/exitcode"
	"rdzv/rdzv/agent/internal/form"
	"rdzv/rdzv/restart"
)

type jobEndedForm struct {
	Job string `json:"job"` // name of the job
	// how the job ended, the same on every agent; null if the store was lost before there was a
	// verdict
	Verdict *form.Verdict `json:"verdict"`
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
	j := attemptFailedForm{
		Attempt: e.Attempt, Own: e.Own, Announce: e.Announce, MayBeConsequence: e.MayBeConsequence,
	}
	if v := e.Verdict; v != nil {
		j.Kind, j.Text = string(v.Kind), v.Error()
		j.Host, j.Rank, j.LocalRank, j.PID = v.Host, v.Rank, v.LocalRank, v.PID
		j.Signal, j.RanSeconds = exitcode.SignalName(v.Signal), v.RanFor.Seconds()
		if v.Kind == rdzv.Failed {
			j.ExitCode, j.Message = exitcode.Of(v.Code, v.Signal), v.Text
		}
	}
	return j
}

type restartingForm struct {
	Attempt int `json:"attempt"` // which attempt begins
	// how many attempts there may be after the first one
	MaxRestarts int `json:"max_restarts"`
	// how long the agents wait before they start the workers
	DelaySeconds float64 `json:"delay_seconds"`

	// nodes whose agents are lost: the others wait for agents in their place
	Vacant []form.Layout `json:"vacant,omitempty"`
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
	Left []form.Process `json:"left,omitempty"`
	// how long after the end of the job they get SIGKILL
	WaitSeconds float64 `json:"wait_seconds"`
}

func settlingFormOf(e Settling) settlingForm {
	j := settlingForm{Running: e.Running, WaitSeconds: e.Wait.Seconds()}
	for _, p := range e.Left {
		j.Left = append(j.Left, form.Process{PID: p.PID, Command: p.Name})
	}
	return j
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
	Successes *form.Successes `json:"successes,omitempty"`
	// in which attempt it failed, if not in the first
	Attempt int `json:"attempt,omitempty"`
	// with `--max-restarts`: why no other attempt follows: `max_restarts` (this was the last one),
	// `exit_code` (one after which there is none), `same_message` (two attempts failed early with
	// the same message), `agent_missing` (an agent was lost, or could not stop its workers in
	// time), `mpi` (the workers are MPI programs, which the launcher can start only once)
	NoRestart restart.Reason `json:"no_restart,omitempty"`
}

type otherFailedForm struct {
	Host string `json:"host"` // node of one
	form.Worker
}

func failureFormOf(f Failure) failureForm {
	j := failureForm{
		Job: f.Job, Program: f.Program, WorldSize: f.WorldSize, Host: f.Host,
		Rank: f.Rank, LocalRank: f.LocalRank, PID: f.PID,
		ExitCode: exitcode.Of(f.Code, f.Signal), Signal: exitcode.SignalName(f.Signal),
		OutOfMemory: f.OOM, RanSeconds: f.Took.Seconds(), Message: f.Message, Stderr: f.Stderr,
		OnTerminal: f.OnTerminal, Joined: f.Joined, Log: f.Log, Hint: f.Hint,
		Attempt: f.Attempt, NoRestart: f.NoRestart,
	}
	if s := f.Successes; s != nil {
		j.Successes = &form.Successes{
			Ranks: s.Ranks, MoreRanks: s.More, BeforeSeconds: s.Before.Seconds(),
		}
	}
	for _, o := range f.Others {
		j.Others = append(j.Others, otherFailedForm{o.Host, form.WorkerOf(o.Worker)})
	}
	return j
}

type stalledForm struct {
	form.Stall
	Text    string `json:"text"`    // the fields above in words
	Attempt int    `json:"attempt"` // number of the attempt; 0 is the first
	// number of the stall in the attempt; 1 is the first
	Number         int     `json:"number"`
	TimeoutSeconds float64 `json:"timeout_seconds"` // `--stall-timeout`
	// whether the attempt ends because of it
	Ends bool `json:"ends"`
	// the file with the report, with `--log-dir`
	File string `json:"file,omitempty"`
	// number of flight recorders of torch that were told to write their files
	Recorders int `json:"flight_recorders,omitempty"`
	// groups of ranks with the same stack, the largest group first
	Stacks []form.Place `json:"stacks"`
	// what could not be determined, such as Python stacks without py-spy
	Problems []form.Problem `json:"problems,omitempty"`
}

func stalledFormOf(e Stalled) stalledForm {
	f := stalledForm{
		Stall: form.StallOf(e.Stall), Text: e.Stall.String(), Attempt: e.Attempt, Number: e.Number,
		TimeoutSeconds: e.Timeout.Seconds(), Ends: e.Ends, File: e.File, Recorders: e.Stacks.Recorders,
		Stacks: []form.Place{},
	}
	for _, g := range e.Stacks.Groups {
		f.Stacks = append(f.Stacks, form.PlaceOf(g))
	}
	for _, p := range e.Stacks.Problems {
		f.Problems = append(f.Problems, form.Problem(p))
	}
	return f
}
