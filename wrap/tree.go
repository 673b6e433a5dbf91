package wrap

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Worker describes one program to run.
type Worker struct {
	// Path is the executable, as returned by Find. A relative path is resolved in Dir. Required.
	Path string `json:"-"`
	// Args is argv, including argv[0]; empty means Path alone.
	Args []string `json:"-"`
	// Env is the complete environment, as "NAME=value".
	Env []string `json:"-"`
	// Dir is the working directory; "" is that of this process.
	Dir string `json:"-"`
	// Stdin, Stdout and Stderr are passed to the worker as they are (a terminal remains a
	// terminal); nil is /dev/null.
	Stdin, Stdout, Stderr *os.File `json:"-"`
	// Capture reads the worker's standard error through the runner, unless Stderr is nil: every
	// byte is written to Stderr, and the last 64 KiB are kept for Result.Stderr. The worker gets a
	// pipe or, if Stderr is a terminal, a pseudoterminal of the same size, which is also its standard
	// output if Stdout is the same terminal. That is not its controlling terminal, and no keys arrive
	// there: programs that read keys from stdout or stderr (less, curses, a shell that controls jobs)
	// need Stderr itself.
	Capture bool
	// Output lets the runner copy what the worker writes; Capture is then not used. nil gives the
	// worker Stdout and Stderr themselves.
	Output *Output
	// LastOutput, if set, tells when the worker has last written something that Capture or Output
	// keeps for Result.Stderr.
	LastOutput *LastOutput `json:"-"`
	// Line, if set, knows whether what Capture or Output has written to Stderr ends within a line.
	// Workers with the same Stderr share it.
	Line *Line `json:"-"`
	// StartAt delays the start of this worker, and of those after it, until this time. The zero
	// value does not.
	StartAt time.Time `json:"-"`
	// Bind sets the CPUs and the memory of the worker; the zero value leaves them those of this
	// process.
	Bind Binding
}

// Tree describes the workers to run and how they end.
type Tree struct {
	// Workers are started in this order; at least one.
	Workers []Worker
	// Grace is how long workers may run after SIGTERM, at least 0; with 0 SIGKILL follows
	// immediately.
	Grace time.Duration
	// Linger lets descendants that the workers leave run on after the last worker has ended, until
	// ctx ends. By default they are stopped then.
	Linger bool

	// Started and Ended, if set, are called after worker i has started and after it has ended: one
	// call at a time, from a goroutine that supervises nothing, so that they may take their time.
	// Ended is called exactly once for each worker, even if it could not be started. Started is
	// called before it if the worker was started.
	Started func(i, pid int)      `json:"-"`
	Ended   func(i int, r Result) `json:"-"`
	// Dumping, if set, is called in the same way before workers that do not end receive SIGABRT,
	// for which they print their stacks: when it returns, or 100 ms later if it has not.
	Dumping func([]Dump) `json:"-"`

	// LogLost, if set, is called in the same way when the log of worker i is given up, with the
	// reason, which may be ErrLogBlocked, and 0; and once more at the end, with the number of bytes
	// that the worker has written and that are not in the log.
	LogLost func(i int, reason error, bytes int64) `json:"-"`
	// OutputLost, if set, is called in the same way if some of the output of worker i could not be
	// shown although it has a reader: once for each stream, "stdout" or "stderr", at its end, with
	// the first reason, which may be ErrNotRead, and the number of bytes. Without a log the worker
	// gets SIGPIPE or EPIPE when it goes on writing to stdout, and OutputError if it succeeds.
	OutputLost func(i int, stream string, reason error, bytes int64) `json:"-"`

	// Source, if set, learns while Run lasts which of its signals the workers have received too,
	// and Result.GroupSignal is set.
	Source *Source `json:"-"`
	// Signalled says which processes get a signal that this process gets, and thereby in which
	// process groups the workers are.
	Signalled Signalled
	// JobControl stops this process when a terminal or a shell has stopped all running workers
	// (SIGTSTP, SIGTTIN, SIGTTOU), so that the shell that started it sees a stopped job. These
	// signals then do not stop this process otherwise, even after Run has returned: once a Go
	// program has caught them they no longer have their default action.
	JobControl bool

	// FrozenLimit is how long this process may be stopped by SIGSTOP, and not continued, while
	// workers run, or what they have left; then the runner kills it and the tree. 0 is for ever. It
	// may be stopped for longer together with all workers or, when these have ended, with all that
	// they have left (Ctrl-Z), or by a debugger.
	FrozenLimit time.Duration

	// Held, if set, is a connection of this process that the runner keeps open: if this process dies,
	// the other end reads end of file when nothing of the tree is left.
	Held *HeldSocket `json:"-"`

	// Lease, if set, limits how long the workers, and what they have left, may run without a renewal.
	// When it is over they receive SIGTERM, and LeaseGrace later everything is killed.
	Lease      *Lease `json:"-"`
	LeaseGrace time.Duration

	// Signals are sent to the workers that have not received them: to all, or if Event.Shared to
	// those that are started after Event.At. A worker that has not been started yet receives each
	// signal, once, when it has. Run receives from Signals until nothing of the tree is left. May be
	// nil.
	Signals <-chan Event `json:"-"`
	// StartNow, when closed, starts the workers whose StartAt has not come. May be nil.
	StartNow <-chan struct{} `json:"-"`
	// DumpStacks, when closed, sends SIGABRT to workers that ignore SIGTERM and catch SIGABRT, as
	// Python's faulthandler does: they print their stacks and die. For use shortly before something
	// else kills them. May be nil.
	DumpStacks <-chan struct{} `json:"-"`
	// Kill, when closed, kills the tree immediately, as at a second Ctrl-C. May be nil.
	Kill <-chan struct{} `json:"-"`
}

// Dump is a worker that is about to receive SIGABRT because it has not ended.
type Dump struct {
	Worker      int  // index in Tree.Workers
	IgnoresTerm bool // it ignores SIGTERM
}

// check returns an error if Run cannot run t.
func (t *Tree) check() error {
	if len(t.Workers) == 0 {
		return errors.New("cannot run a tree: no workers")
	}
	if t.Grace < 0 {
		return fmt.Errorf("cannot run a tree: negative grace %v", t.Grace)
	}
	if t.LeaseGrace < 0 {
		return fmt.Errorf("cannot run a tree: negative grace %v after a lease", t.LeaseGrace)
	}
	for i, w := range t.Workers {
		if w.Path == "" {
			return fmt.Errorf("cannot run worker %d: empty path", i)
		}
		if err := w.Bind.check(); err != nil {
			return fmt.Errorf("cannot run worker %d: %w", i, err)
		}
	}
	return nil
}
