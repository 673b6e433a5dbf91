package main

import (
	"errors"
	"os"
	"time"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// report is the content of the --report file, with what is known so far.
type report struct {
	file    string         // "" if no report is requested
	signals chan os.Signal // that catchSignals catches
	console *console.Console
	rank0   bool // this agent runs it

	Kind      string   `json:"kind"` // endedWell, the kind of a verdict, or endedByError
	Job       string   `json:"job,omitempty"`
	Program   []string `json:"program,omitempty"`
	WorldSize int      `json:"world_size,omitempty"` // 0 if the world was not agreed
	Attempt   int      `json:"attempt,omitempty"`    // the last one that was agreed; 0 is the first
	ExitCode  int      `json:"exit_code"`            // as a shell shows it: 128+n for signal n
	Message   string   `json:"message,omitempty"`
	*failure
	Stall *stall `json:"stall,omitempty"`
}

// stall is the part about a job that made no progress.
type stall struct {
	rdzv.Stall
	File   string `json:"file,omitempty"`   // with the stacks of all ranks
	Stacks string `json:"stacks,omitempty"` // where they are; rank 0's agent knows it
}

// stalled keeps what rank 0's agent knows of a stall that ends the attempt.
func (r *report) stalled(e agent.Stalled) {
	if e.Ends {
		r.Stall = &stall{File: e.File, Stacks: console.StallText(e)}
	}
}

// setStall takes what the verdict says of the stall that has ended the job; nothing if v is another
// one.
func (r *report) setStall(v *rdzv.Verdict) {
	if v.Stall == nil {
		r.Stall = nil // it was in an earlier attempt
		return
	}
	if r.Stall == nil {
		r.Stall = &stall{}
	}
	r.Stall.Stall = *v.Stall
}

// failure is the part about the worker that failed first.
type failure struct {
	Rank      int          `json:"rank"`
	LocalRank int          `json:"local_rank"`
	Host      string       `json:"host"`
	PID       int          `json:"pid"`
	Signal    rdzv.Signal  `json:"signal,omitempty"`
	OOM       bool         `json:"out_of_memory,omitempty"`
	Seconds   rdzv.Seconds `json:"seconds"`          // from its start to its end
	Stderr    []string     `json:"stderr,omitempty"` // its last lines, or its traceback
	Others    []other      `json:"others,omitempty"` // workers that failed before they were stopped
}

type other struct {
	Rank    int    `json:"rank"`
	Host    string `json:"host"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

const (
	endedWell    = "success"
	endedByError = "error" // rdzv itself failed on this node
)

// result writes the report after all agents have settled. If a worker failed, the worker's agent
// writes it; otherwise the agent that leads the job and that of rank 0, whose node is the one that
// a user knows, or every agent if the store is lost.
func (r *report) result(end agent.Result) {
	code, line := agent.ExitCode(end, nil), r.console.EndLine(end.Ended)
	if end.Verdict != nil {
		r.setStall(end.Verdict)
	}
	switch v := end.Verdict; {
	case v == nil:
		r.write(string(rdzv.Lost), code, line, nil)
	case end.Failure != nil:
		f := failureOf(v)
		f.OOM, f.Stderr = end.Failure.OOM, end.Failure.Stderr
		for _, o := range end.Failures {
			f.Others = append(f.Others, other{o.Rank, o.Host, console.StatusLine(o.Code, o.Signal), o.Text})
		}
		r.write(string(v.Kind), code, v.Text, f)
	case v.Kind == rdzv.Failed: // the worker's agent writes it, see also early
	case end.Leads, end.StoreLost, r.rank0:
		kind := string(v.Kind)
		if v.Kind == rdzv.Done {
			kind, line = endedWell, ""
		}
		write := writeReport
		if !end.Leads && !end.StoreLost {
			write = replaceReport
		}
		r.set(kind, code, line, nil)
		r.writeBy(write, reportTimeout)
	}
}

// early writes what the agents that lead the job or run rank 0 know about the failure of another
// agent's worker, as soon as the job has ended. If both agents have the same file, the worker's
// agent replaces it; otherwise this file at least does not describe an earlier job.
func (r *report) early(end agent.JobEnded) {
	v := end.Verdict
	if v == nil || v.Kind != rdzv.Failed || end.Own || !end.Leads && !r.rank0 {
		return
	}
	code := agent.ExitCode(agent.Result{Summary: rdzv.Summary{Verdict: v}}, nil)
	r.set(string(v.Kind), code, v.Text, failureOf(v))
	r.writeBy(addReport, earlyTimeout)
}

// failureOf is what every agent knows about the worker that failed first.
func failureOf(v *rdzv.Verdict) *failure {
	return &failure{
		Rank: v.Rank, LocalRank: v.LocalRank, Host: v.Host, PID: v.PID, Signal: v.Signal,
		Seconds: v.RanFor,
	}
}

// write writes the report; f is nil if no worker failed.
func (r *report) write(kind string, code int, message string, f *failure) {
	r.set(kind, code, message, f)
	r.writeBy(writeReport, reportTimeout)
}

func (r *report) set(kind string, code int, message string, f *failure) {
	r.Kind, r.ExitCode, r.Message, r.failure = kind, code, message, f
}

// writeBy writes the report by one of the functions of reportfile.go. If it cannot be written, the
// job's end is the same.
func (r *report) writeBy(
	write func(path string, b []byte, deadline time.Time) error, limit time.Duration,
) {
	if r.file == "" {
		return
	}
	for len(r.signals) > 0 {
		<-r.signals // it has already been acted on
	}
	err := within(time.Now().Add(limit), r.signals, r.file, indented(r), write)
	if err != nil {
		r.console.Warn("%v", err)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		r.file = "" // a second try would delay the end of the job again
	}
}

// earlyTimeout and reportTimeout limit how long two agents, one after the other, may delay the end
// of a job by their reports: by 5 s. After a signal it is interruptedTimeout.
const (
	earlyTimeout       = time.Second
	reportTimeout      = 4 * time.Second
	interruptedTimeout = time.Second
)
