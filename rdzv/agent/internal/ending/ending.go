// Package ending examines how a worker failed.
package ending

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/advice"
	"rdzv/rdzv/agent/internal/postmortem"
	"rdzv/wrap"
)

// Ending has the details of a worker's end that only its agent knows, for the report on a failure.
type Ending struct {
	File     string // where torch records an exception; "" if nowhere
	Findings postmortem.Findings
	Joined   bool      // the findings are those of stdout and stderr
	Unread   error     // why there are none: see wrap.Result
	TracedAt time.Time // when it has printed its last traceback; zero if it has printed none
	OOM      bool      // the kernel ran out of memory while it ran
	Hint     string    // what to try
}

// Workers are the workers of an agent in one attempt.
type Workers struct {
	Root        fs.FS
	Argv        []string
	Python      string // that runs the program; "" if it is not known
	KillsBefore int    // by the kernel's out-of-memory killer before they began
	MasterPort  int
	Fixed       bool // MasterPort was given
}

// Examine completes what is known of a worker that has failed.
func (e *Ending) Examine(of Workers, r wrap.Result, worker *rdzv.Worker) {
	unwritable, _ := errors.AsType[*wrap.OutputError](r.Err)
	switch kills := postmortem.OOMKills(of.Root); {
	case unwritable != nil:
	case r.Err != nil:
		e.Hint = advice.OnProgram(r.Err, of.Argv)
	case r.Signal != syscall.SIGKILL:
	case kills < 0:
		e.Hint = "if nobody sent SIGKILL, memory may have run out: dmesg shows " +
			"whether the kernel's out-of-memory killer ended it"
	default:
		e.OOM = kills > of.KillsBefore
	}
	e.Findings, e.Joined = postmortem.Examine(r.Stderr, e.File, r.Signal != 0), r.Joined
	e.Unread = r.Unread
	worker.LastLine = e.Findings.LastLine && r.Joined // it may be of stdout
	worker.Text, worker.OOM = e.Findings.Message, e.OOM
	if unwritable != nil || worker.Text == "" && r.Err != nil {
		worker.Text = r.Err.Error()
	}
	if e.Hint == "" {
		e.Hint = advice.OnStart(e.Findings, of.Python, of.MasterPort, of.Fixed)
	}
}

// Remove removes the files of workers that have ended.
func Remove(all []Ending) {
	for _, e := range all {
		os.Remove(e.File) // it exists if the worker wrote it
	}
}
