package main

import (
	"rdzv/cmd/rdzv/internal/console"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// failure is the report on the worker that failed first, as --report writes it.
type failure struct {
	Kind      string   `json:"kind"`
	Job       string   `json:"job"`
	Program   []string `json:"program"`
	Rank      int      `json:"rank"`
	LocalRank int      `json:"local_rank"`
	WorldSize int      `json:"world_size"`
	Host      string   `json:"host"`
	PID       int      `json:"pid"`
	ExitCode  int      `json:"exit_code"`        // as a shell shows it: 128+n for signal n
	Signal    string   `json:"signal,omitempty"` // such as SIGKILL
	OOM       bool     `json:"out_of_memory,omitempty"`
	Seconds   float64  `json:"seconds"` // from its start to its end
	Message   string   `json:"message,omitempty"`
	Stderr    []string `json:"stderr,omitempty"` // its last lines, or its traceback
	Others    []other  `json:"others,omitempty"` // workers that failed before they were stopped
}

type other struct {
	Rank    int    `json:"rank"`
	Host    string `json:"host"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

// report writes the --report file after all agents have settled. If a worker failed, the worker's
// agent writes it; otherwise the agent that hosts the store, or every agent if that one is lost.
func (e *execution) report(r agent.Result) {
	switch v := r.Verdict; {
	case v == nil:
		e.save(e.endReport(string(rdzv.Lost), agent.ExitCode(r, nil), console.EndLine(r.Ended, e.joinTimeout)))
	case r.Failure != nil:
		f := e.failure(v)
		f.OOM, f.Stderr = r.Failure.OOM, r.Failure.Stderr
		for _, o := range r.Failures {
			f.Others = append(f.Others, other{o.Rank, o.Host, console.StatusLine(o.Code, o.Signal), o.Text})
		}
		e.save(f)
	case v.Kind == rdzv.Failed: // the worker's agent writes it, see also reportEarly
	case !r.Hosting && !r.StoreLost:
	case v.Kind == rdzv.Done:
		e.save(e.endReport(endedWell, agent.ExitCode(r, nil), ""))
	default:
		e.save(e.endReport(string(v.Kind), agent.ExitCode(r, nil), console.EndLine(r.Ended, e.joinTimeout)))
	}
}

// reportEarly writes what the agent that hosts the store knows about the failure of another agent's
// worker, before this agent settles. If both agents have the same file, the worker's agent replaces
// it when all have settled; otherwise this file at least does not describe an earlier job.
func (e *execution) reportEarly(end agent.JobEnded) {
	v := end.Verdict
	if v == nil || v.Kind != rdzv.Failed || !end.Hosting || end.Own || e.reportFile == "" {
		return
	}
	if _, ok := replaceable(e.reportFile); ok { // the reader of a FIFO expects one report
		e.save(e.failure(v))
	}
}

// failure is what every agent knows about the worker that failed first.
func (e *execution) failure(v *rdzv.Verdict) failure {
	f := failure{
		Kind: string(v.Kind), Job: e.job, Program: e.program, WorldSize: e.worldSize,
		Rank: v.Rank, LocalRank: v.LocalRank, Host: v.Host, PID: v.PID,
		ExitCode: agent.ExitCode(agent.Result{Summary: rdzv.Summary{Verdict: v}}, nil), Seconds: v.Took.Seconds(), Message: v.Text,
	}
	if v.Signal != 0 {
		f.Signal = console.SignalName(v.Signal)
	}
	return f
}

// endReport is the report on a job that ended otherwise.
func (e *execution) endReport(kind string, code int, message string) endReport {
	return endReport{
		Kind: kind, Job: e.job, Program: e.program, WorldSize: e.worldSize,
		ExitCode: code, Message: message,
	}
}
