package agent

import (
	"rdzv/rdzv"
	"rdzv/rdzv/restart"
)

// The JSON forms of the events of a job's end.

type workerForm struct {
	Rank       int     `json:"rank"`
	LocalRank  int     `json:"local_rank"`
	PID        int     `json:"pid"`
	ExitCode   int     `json:"exit_code"`
	Signal     string  `json:"signal,omitempty"`
	Stopped    bool    `json:"stopped"`
	RanSeconds float64 `json:"ran_seconds"`
	Message    string  `json:"message,omitempty"`
}

func workerFormOf(w rdzv.Worker) workerForm {
	return workerForm{
		w.Rank, w.LocalRank, w.PID, workerCode(w.Code, w.Signal), signalName(w.Signal), w.Stopped,
		w.Took.Seconds(), w.Text,
	}
}

type rosterForm struct {
	Joined  int   `json:"joined"`
	Agents  int   `json:"agents"`
	Min     int   `json:"min_agents,omitempty"`
	Missing []int `json:"missing_tasks,omitempty"`

	MissingNodes []int `json:"missing_nodes,omitempty"`

	Hosts     []string `json:"hosts,omitempty"`
	MoreHosts int      `json:"more_hosts,omitempty"`

	Absent     []string `json:"absent_hosts,omitempty"`
	MoreAbsent int      `json:"more_absent_hosts,omitempty"`

	Refused     []string `json:"refused,omitempty"`
	MoreRefused int      `json:"more_refused,omitempty"`

	OtherVersion     []string `json:"other_version,omitempty"`
	MoreOtherVersion int      `json:"more_other_version,omitempty"`

	Waiting     []string `json:"waiting,omitempty"`
	MoreWaiting int      `json:"more_waiting,omitempty"`
	Unattended  bool     `json:"-"`
}

type stragglersForm struct {
	First        int              `json:"first_rank"`
	AfterSeconds float64          `json:"after_seconds"`
	Running      []rdzv.Straggler `json:"running"`
	MoreRunning  int              `json:"more_running,omitempty"`
}

func stragglersFormOf(s rdzv.Stragglers) stragglersForm {
	return stragglersForm{s.First, s.After.Seconds(), s.Running, s.More}
}

type jobEndedForm struct {
	Job                string       `json:"job"`
	Verdict            *verdictForm `json:"verdict"`
	Hosting            bool         `json:"hosting"`
	Leads              bool         `json:"leads"`
	Own                bool         `json:"own"`
	Announce           bool         `json:"announce"`
	StoreHost          string       `json:"store_host,omitempty"`
	StoreRank          int          `json:"store_rank"`
	StoreSilentSeconds float64      `json:"store_silent_seconds,omitempty"`
	Etcd               string       `json:"etcd,omitempty"`
	StoreLost          string       `json:"store_lost,omitempty"`

	NoRestart restart.Reason `json:"no_restart,omitempty"`
	Hint      string         `json:"hint,omitempty"`
}

type verdictForm struct {
	Kind          string             `json:"kind"`
	Text          string             `json:"text"`
	Host          string             `json:"host,omitempty"`
	PID           int                `json:"pid,omitempty"`
	Rank          int                `json:"rank"`
	LocalRank     int                `json:"local_rank"`
	Ranks         int                `json:"ranks,omitempty"`
	SilentSeconds float64            `json:"silent_seconds,omitempty"`
	ExitCode      int                `json:"exit_code,omitempty"`
	Signal        string             `json:"signal,omitempty"`
	RanSeconds    float64            `json:"ran_seconds,omitempty"`
	Message       string             `json:"message,omitempty"`
	Problems      []rdzv.NodeProblem `json:"problems,omitempty"`
	MoreProblems  int                `json:"more_problems,omitempty"`
	Roster        *rosterForm        `json:"roster,omitempty"`
	Stragglers    *stragglersForm    `json:"stragglers,omitempty"`
	Stall         *stallForm         `json:"stall,omitempty"`
}

func verdictFormOf(v *rdzv.Verdict) *verdictForm {
	if v == nil {
		return nil
	}
	f := &verdictForm{
		Kind: string(v.Kind), Text: v.Error(), Host: v.Host, PID: v.PID,
		Rank: v.Rank, LocalRank: v.LocalRank, Ranks: v.Ranks,
		SilentSeconds: v.Silent.Seconds(), Signal: signalName(v.Signal),
		RanSeconds: v.Took.Seconds(), Problems: v.Problems, MoreProblems: v.MoreProblems,
		Roster: (*rosterForm)(v.Roster),
	}
	if v.Kind == rdzv.Failed {
		f.ExitCode, f.Message = workerCode(v.Code, v.Signal), v.Text
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
	Attempt    int     `json:"attempt"`
	Kind       string  `json:"kind"`
	Text       string  `json:"text"`
	Host       string  `json:"host"`
	Rank       int     `json:"rank"`
	LocalRank  int     `json:"local_rank"`
	PID        int     `json:"pid"`
	ExitCode   int     `json:"exit_code"`
	Signal     string  `json:"signal,omitempty"`
	RanSeconds float64 `json:"ran_seconds"`
	Message    string  `json:"message,omitempty"`
	Own        bool    `json:"own"`
	Announce   bool    `json:"announce"`

	MayBeConsequence bool `json:"may_be_consequence,omitempty"`
}

func attemptFailedFormOf(e AttemptFailed) attemptFailedForm {
	form := attemptFailedForm{
		Attempt: e.Attempt, Own: e.Own, Announce: e.Announce, MayBeConsequence: e.MayBeConsequence,
	}
	if v := e.Verdict; v != nil {
		form.Kind, form.Text = string(v.Kind), v.Error()
		form.Host, form.Rank, form.LocalRank, form.PID = v.Host, v.Rank, v.LocalRank, v.PID
		form.Signal, form.RanSeconds = signalName(v.Signal), v.Took.Seconds()
		if v.Kind == rdzv.Failed {
			form.ExitCode, form.Message = workerCode(v.Code, v.Signal), v.Text
		}
	}
	return form
}

type restartingForm struct {
	Attempt      int     `json:"attempt"`
	MaxRestarts  int     `json:"max_restarts"`
	DelaySeconds float64 `json:"delay_seconds"`

	Vacant    []layoutForm `json:"vacant,omitempty"`
	Missing   int          `json:"missing_agents,omitempty"`
	Withdrawn bool         `json:"withdrawn,omitempty"`
	Announce  bool         `json:"announce"`
}

type settlingForm struct {
	Running     []WorkerStarted `json:"running,omitempty"`
	Left        []processForm   `json:"left,omitempty"`
	WaitSeconds float64         `json:"wait_seconds"`
}

type processForm struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

func settlingFormOf(e Settling) settlingForm {
	form := settlingForm{Running: e.Running, WaitSeconds: e.Wait.Seconds()}
	for _, p := range e.Left {
		form.Left = append(form.Left, processForm{p.PID, p.Name})
	}
	return form
}

type failureForm struct {
	Job         string            `json:"job"`
	Program     []string          `json:"program"`
	WorldSize   int               `json:"world_size"`
	Host        string            `json:"host"`
	Rank        int               `json:"rank"`
	LocalRank   int               `json:"local_rank"`
	PID         int               `json:"pid"`
	ExitCode    int               `json:"exit_code"`
	Signal      string            `json:"signal,omitempty"`
	OutOfMemory bool              `json:"out_of_memory"`
	RanSeconds  float64           `json:"ran_seconds"`
	Message     string            `json:"message,omitempty"`
	Stderr      []string          `json:"stderr,omitempty"`
	OnTerminal  bool              `json:"stderr_on_terminal,omitempty"`
	Joined      bool              `json:"stderr_with_stdout,omitempty"`
	Log         string            `json:"log,omitempty"`
	Hint        string            `json:"hint,omitempty"`
	Others      []otherFailedForm `json:"others,omitempty"`
	Successes   *successesForm    `json:"successes,omitempty"`
	Attempt     int               `json:"attempt,omitempty"`
	NoRestart   restart.Reason    `json:"no_restart,omitempty"`
}

type successesForm struct {
	Ranks         []int   `json:"ranks"`
	MoreRanks     int     `json:"more_ranks,omitempty"`
	BeforeSeconds float64 `json:"before_seconds"`
}

type otherFailedForm struct {
	Host string `json:"host"`
	workerForm
}

func failureFormOf(f Failure) failureForm {
	form := failureForm{
		Job: f.Job, Program: f.Program, WorldSize: f.WorldSize, Host: f.Host,
		Rank: f.Rank, LocalRank: f.LocalRank, PID: f.PID,
		ExitCode: workerCode(f.Code, f.Signal), Signal: signalName(f.Signal), OutOfMemory: f.OOM,
		RanSeconds: f.Took.Seconds(), Message: f.Message, Stderr: f.Stderr, OnTerminal: f.OnTerminal,
		Joined: f.Joined, Log: f.Log, Hint: f.Hint, Attempt: f.Attempt, NoRestart: f.NoRestart,
	}
	if s := f.Successes; s != nil {
		form.Successes = &successesForm{s.Ranks, s.More, s.Before.Seconds()}
	}
	for _, o := range f.Others {
		form.Others = append(form.Others, otherFailedForm{o.Host, workerFormOf(o.Worker)})
	}
	return form
}
