package record

import (
	"cmp"
	"fmt"
	"slices"

	"rdzv/rdzv/restart"
)

// Outcome is how the workers of one agent ended.
type Outcome struct {
	Host    string   `json:"host"`
	Workers []Worker `json:"workers"`
	Details []Detail `json:"details,omitempty"` // of workers, as far as they are known
	// Withdrawn says that the agent is to leave, and has no workers: see Session.Withdraw.
	Withdrawn bool `json:"withdrawn,omitempty"`
	// Ending says that the agent has received a signal that ends the attempt: if another agent
	// withdrew first, the signal was for all.
	Ending bool `json:"ending,omitempty"`
}

// Detail is what reports say of a worker beyond how it ended. Times are in ms since 1970, by the
// clock of the worker's node; 0 is not known.
type Detail struct {
	Rank        int   `json:"rank"`
	Start       int64 `json:"start,omitempty"`
	Init        int64 `json:"init,omitempty"` // when it has reached init_process_group
	FirstOutput int64 `json:"output,omitempty"`
	End         int64 `json:"end,omitempty"`
	// Stderr are its last lines or its traceback, if its failure may have ended the job. Joined says
	// that they are of stdout, too, Log is the file on its node that has its output.
	Stderr []string `json:"stderr,omitempty"`
	Joined bool     `json:"joined,omitempty"`
	Log    string   `json:"log,omitempty"`
}

// maxStderr is how many bytes of Detail.Stderr an outcome has; JSON may need six for one.
const maxStderr = MaxValue / 64

// ClippedDetails are details of the size that is allowed: with the last lines that fit.
func ClippedDetails(details []Detail) []Detail {
	details, budget := slices.Clone(details), maxStderr
	for i := range details {
		lines := slices.Clone(details[i].Stderr)
		for at, line := range slices.Backward(lines) {
			lines[at] = Clip(line)
			if budget -= len(lines[at]); budget < 0 {
				lines = lines[at+1:]
				break
			}
		}
		details[i].Stderr = lines
	}
	return details
}

// Worker is how one worker ended.
type Worker struct {
	Rank      int `json:"rank"`       // its rank
	LocalRank int `json:"local_rank"` // its local rank
	PID       int `json:"pid"`        // its process ID; 0 if it could not be started
	// its exit code, as a shell shows it: 128+n for signal n
	Code   int    `json:"exit_code"`
	Signal Signal `json:"signal,omitempty"` // the signal that ended it
	// whether it was told to stop before it ended; it has not failed by itself then
	Stopped bool    `json:"stopped"`
	RanFor  Seconds `json:"ran_seconds"` // from its start to its end
	// one line on its failure, from its stderr or its error file
	Text string `json:"message,omitempty"`
	// whether the kernel's out-of-memory killer has killed a process of its cgroup
	OOM bool `json:"out_of_memory,omitempty"`
	// whether it is an MPI program that the launcher cannot start again
	MPI bool `json:"mpi,omitempty"`
	// how long before this was written it ended
	Age Seconds `json:"age_seconds,omitempty"`
	// how long after its end its failure is reported, because it may be the consequence of another
	ReportDelay Seconds `json:"report_delay_seconds,omitempty"`
	// whether `message` is only the last line of its stdout and stderr
	LastLine bool `json:"last_line,omitempty"`
	// whether it has lost its connection to another worker, also if it was told to stop
	Disconnected bool `json:"disconnected,omitempty"`
}

func (w Worker) OK() bool { return w.Code == 0 && w.Signal == 0 }

// FailedAlone reports whether the worker failed before it was stopped.
func (w Worker) FailedAlone() bool { return !w.OK() && !w.Stopped }

// shown is the worker with the exit code that a shell shows.
func (w Worker) shown() Worker {
	if w.Signal != 0 {
		w.Code = 128 + int(w.Signal)
	}
	return w
}

// NewOutcome returns an outcome that is not larger than a value may be. It omits the texts
// that exceed a total.
func NewOutcome(host string, workers []Worker) Outcome {
	o := Outcome{Host: host, Workers: slices.Clone(workers)}
	budget := MaxValue / 16 // JSON may need six bytes for one
	for i := range o.Workers {
		o.Workers[i] = o.Workers[i].shown()
		w := &o.Workers[i]
		w.Text = Clip(w.Text)
		if budget -= len(w.Text); budget < 0 {
			w.Text = ""
		}
	}
	return o
}

// Failed returns the worker whose failure is that of the agent: the first one that failed
// before it was stopped, else the first one that failed.
func (o Outcome) Failed() (Worker, bool) {
	i := slices.IndexFunc(o.Workers, Worker.FailedAlone)
	if i < 0 {
		i = slices.IndexFunc(o.Workers, func(w Worker) bool { return !w.OK() })
	}
	if i < 0 {
		return Worker{}, false
	}
	return o.Workers[i], true
}

// Settled is the value of signal/settled.
type Settled struct {
	// Cause is how the attempt has ended if that is not the verdict, see package job.
	Cause *Verdict `json:"cause,omitempty"`
	// Code is the exit code of a job that a signal ended, see EndedCode.
	Code int `json:"code"`
	// Unsettled names the agents that had not settled at the timeout; "" if there are none.
	Unsettled string `json:"unsettled,omitempty"`
	// Unreported is true if the agent whose worker failed first was lost before all had settled.
	Unreported bool `json:"unreported,omitempty"`
	// Successes are those shortly before the failure that ended the job; nil if there are none.
	Successes *Successes `json:"successes,omitempty"`
	// Disconnected is how many other workers lost their connection to another one.
	Disconnected int `json:"disconnected,omitempty"`
	// Restart is the next attempt, nil if there is none, because of NoRestart.
	Restart   *Restart       `json:"restart,omitempty"`
	NoRestart restart.Reason `json:"no_restart,omitempty"`
}

// Successes are workers that exited with 0 shortly before another one failed. That one may have
// failed because they were gone.
type Successes struct {
	Ranks []int `json:"ranks"`                // their ranks, the first 8
	More  int   `json:"more_ranks,omitempty"` // how many others there are
	// how long before the failure the first of them exited
	Before Seconds `json:"before_seconds"`
}

// String returns a phrase for people: "ranks 0,1 had finished normally 0.2s earlier".
func (s Successes) String() string {
	return fmt.Sprintf("%s had finished normally %.1fs earlier", RankList(s.Ranks, s.More),
		s.Before.Seconds())
}

// EndedCode returns the exit code of a job that a signal ended. It is 128+signal if the
// signal, or rdzv because of it, terminated a worker. Otherwise it is the first nonzero code in the
// order of the outcomes, where signal n counts as 128+n: programs choose it for a reason. It is
// 128+signal also if no worker had started, or if all exited with 0, for example because they saved
// their state: the job has not done its work, and 0 would say that it has.
func EndedCode(signal Signal, outcomes []Outcome) int {
	code := 0
	for _, o := range outcomes {
		for _, w := range o.Workers {
			switch {
			case w.Signal == signal, w.Stopped && w.Signal != 0:
				return 128 + int(signal)
			case code == 0:
				code = w.shown().Code
			}
		}
	}
	return cmp.Or(code, 128+int(signal))
}
