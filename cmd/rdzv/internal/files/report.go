package files

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"time"

	"rdzv/cmd/rdzv/internal/announce"
	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/tables"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// Report is the content of the file of --report, with what is known so far: how the job ended.
type Report struct {
	file    string // "" if no report is requested
	limit   *Limit
	console *console.Console
	rank0   bool // this agent runs it

	now func() time.Time

	Format    int              `json:"format"`  // see format
	Time      time.Time        `json:"time"`    // when it was written
	Version   string           `json:"version"` // of rdzv
	Kind      string           `json:"kind"`    // endedWell, the kind of a verdict, or ByError
	Job       string           `json:"job,omitempty"`
	Program   []string         `json:"program,omitempty"`
	WorldSize int              `json:"world_size,omitempty"` // 0 if the world was not agreed
	Attempt   int              `json:"attempt,omitempty"`    // the last one that was agreed, from 0
	Nodes     []rdzv.NodeRanks `json:"nodes,omitempty"`      // with their ranks, of that attempt
	ExitCode  int              `json:"exit_code"`            // as a shell shows it: 128+n for signal n
	Message   string           `json:"message,omitempty"`
	*failure
	Stall *stall `json:"stall,omitempty"`
	// Ranks are the times of all ranks in the last attempt, null where this agent does not know them.
	Ranks []agent.RankTimes `json:"ranks,omitempty"`
}

// format is the version of the report's format. A new one renames or removes a field, or changes a
// meaning; new fields do not need one.
const format = 1

// NewReport is a report of this version of rdzv that is not written yet. The console tells why it
// could not be written.
func NewReport(
	c *console.Console, limit *Limit, version string, now func() time.Time,
) *Report {
	return &Report{
		console: c, limit: limit, Format: format, Version: version, now: now,
	}
}

// To says where the report is written, and on which program.
func (r *Report) To(path string, program []string) { r.file, r.Program = path, program }

// Agreed keeps what is known of the job when its world is agreed.
func (r *Report) Agreed(w rdzv.World) {
	r.WorldSize, r.Attempt, r.Nodes = w.Size, w.Attempt, w.Layout
	r.Ranks = make([]agent.RankTimes, w.Size)
	for rank := range r.Ranks {
		r.Ranks[rank].Rank = rank
	}
	r.rank0 = w.Seat.Has(0)
}

// stall is the part about a job that made no progress.
type stall struct {
	rdzv.Stall
	File   string `json:"file,omitempty"`   // with the stacks of all ranks
	Stacks string `json:"stacks,omitempty"` // where they are; rank 0's agent knows it
}

// Stalled keeps what rank 0's agent knows of a stall that ends the attempt.
func (r *Report) Stalled(e agent.Stalled) {
	if e.Ends {
		r.Stall = &stall{File: e.File, Stacks: announce.StallText(e)}
	}
}

// setStall takes what the verdict says of the stall that has ended the job; nothing if v is another
// one.
func (r *Report) setStall(v *rdzv.Verdict) {
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
	Log       string       `json:"log,omitempty"`    // the file on its node that has its output
	Others    []other      `json:"others,omitempty"` // workers that failed before they were stopped
	// Disconnected is how many other workers lost their connection to another one.
	Disconnected int `json:"disconnected,omitempty"`
}

type other struct {
	Rank    int    `json:"rank"`
	Host    string `json:"host"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

const (
	endedWell = "success"
	ByError   = "error" // the kind of a report: rdzv itself failed on this node
)

// Ended writes the report after all agents have settled. If a worker failed, the worker's agent
// writes it; otherwise the agent that leads the job and that of rank 0, whose node is the one that
// a user knows, or every agent if the store is lost.
func (r *Report) Ended(end agent.Result) {
	code, line := agent.ExitCode(end, nil), end.Ended.String()
	for _, times := range end.Ranks {
		if times.Rank >= 0 && times.Rank < len(r.Ranks) {
			r.Ranks[times.Rank] = times
		}
	}
	if end.Verdict != nil {
		r.setStall(end.Verdict)
	}
	switch v := end.Verdict; {
	case v == nil:
		r.write(string(rdzv.Lost), code, line, nil)
	case end.Failure != nil && (end.Ended.Own || end.Unreported || end.StoreLost):
		f := failureOf(v)
		f.OOM, f.Stderr, f.Log = end.Failure.OOM, end.Failure.Stderr, end.Failure.Log
		f.Others, f.Disconnected = othersOf(end), end.Disconnected
		r.write(string(v.Kind), code, v.Text, f)
	case v.Kind == rdzv.Failed:
		r.failedElsewhere(end, code)
	case end.Leads, end.StoreLost, r.rank0:
		kind := string(v.Kind)
		if v.Kind == rdzv.Done {
			kind, line = endedWell, ""
		}
		r.set(kind, code, line, nil)
		r.put(!end.Leads && !end.StoreLost, Timeout)
	}
}

// failedElsewhere completes what Early has written, if the worker's agent has settled. If both
// agents have the same file, it does not matter which one writes last: they know the same.
func (r *Report) failedElsewhere(end agent.Result, code int) {
	v := end.Verdict
	at := slices.IndexFunc(end.Details, func(d rdzv.Detail) bool { return d.Rank == v.Rank })
	if at < 0 || !end.Leads && !r.rank0 {
		return
	}
	f := failureOf(v)
	f.Stderr, f.Log = end.Details[at].Stderr, end.Details[at].Log
	f.Others, f.Disconnected = othersOf(end), end.Disconnected
	r.set(string(v.Kind), code, v.Text, f)
	r.put(false, Timeout)
}

// othersOf are the other workers that failed.
func othersOf(end agent.Result) (list []other) {
	for _, o := range end.Failures {
		list = append(list, other{o.Rank, o.Host, rdzv.ExitStatus(o.Code, o.Signal), o.Text})
	}
	return list
}

// Early writes what the agents that lead the job or run rank 0 know about the failure of another
// agent's worker, as soon as the job has ended. If both agents have the same file, the worker's
// agent replaces it; otherwise this file at least does not describe an earlier job.
func (r *Report) Early(end agent.JobEnded) {
	v := end.Verdict
	if v == nil || v.Kind != rdzv.Failed || end.Own || !end.Leads && !r.rank0 {
		return
	}
	code := agent.ExitCode(agent.Result{Summary: rdzv.Summary{Verdict: v}}, nil)
	r.set(string(v.Kind), code, v.Text, failureOf(v))
	r.put(true, earlyTimeout)
}

// failureOf returns the fields of a failure that the verdict has, so that every agent knows them.
// Ended adds the others.
func failureOf(v *rdzv.Verdict) *failure {
	return &failure{
		Rank: v.Rank, LocalRank: v.LocalRank, Host: v.Host, PID: v.PID, Signal: v.Signal,
		OOM: v.OOM, Seconds: v.RanFor,
	}
}

// Write writes the report on a job that no worker's failure has ended.
func (r *Report) Write(kind string, code int, message string) { r.write(kind, code, message, nil) }

// write writes the report; f is nil if no worker failed.
func (r *Report) write(kind string, code int, message string, f *failure) {
	r.set(kind, code, message, f)
	r.put(false, Timeout)
}

func (r *Report) set(kind string, code int, message string, f *failure) {
	r.Kind, r.ExitCode, r.Message, r.failure = kind, code, message, f
}

// put writes the report, within limit. another says that another agent writes one too. If it
// cannot be written, the job's end is the same.
func (r *Report) put(another bool, limit time.Duration) {
	if r.file == "" {
		return
	}
	r.Time = r.now().UTC().Truncate(time.Millisecond)
	path, b := r.file, tables.JSON(r)
	err := r.limit.Do(limit, func() error { return writeReport(path, b, another) })
	if err != nil {
		r.console.Warn("cannot write the report %q: %v", path, err)
	}
	if errors.Is(err, ErrSlow) {
		r.file = "" // a second try would delay the end of the job again
	}
}

// earlyTimeout limits how long the reports of two agents, one after the other, may delay the end of
// a job: by 5 s.
const earlyTimeout = time.Second

// writeReport replaces a regular file, and writes to anything else. If another agent writes a
// report too, it leaves one about the same failure as it is, because the worker's agent, which
// knows more, has written it; and what is no regular file: the reader of a FIFO expects one report.
func writeReport(path string, b []byte, another bool) error {
	t, err := resolve(path)
	switch {
	case err != nil:
		return err
	case t.replaceable():
		if another {
			if old, err := os.ReadFile(t.path); err == nil && sameFailure(old, b) {
				return nil
			}
		}
		return t.replace(b)
	case another:
		return nil
	}
	f, err := openToAppend(path)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return Cause(errors.Join(err, f.Close()))
}

// sameFailure tells whether two reports are about the same worker of the same attempt.
func sameFailure(a, b []byte) bool {
	type worker struct {
		Job, Host    string
		Attempt, PID int
	}
	var v, w worker
	return json.Unmarshal(a, &v) == nil && json.Unmarshal(b, &w) == nil && v == w && v.PID != 0
}
