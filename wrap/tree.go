package wrap

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Worker is one program to run.
type Worker struct {
	// Path is the program's file, as Find gives it. If relative, it is taken from Dir.
	Path string
	// Args is its argument list, which begins with its name; empty means Path alone.
	Args []string
	// Env is its whole environment, as "NAME=value".
	Env []string
	// Dir is its working directory; "" is this process's own.
	Dir string
	// Stdin, Stdout and Stderr are handed to it as they are (a terminal stays a terminal); nil is /dev/null.
	Stdin, Stdout, Stderr *os.File
	// Capture makes its standard error pass through this process if Stderr is no terminal: every byte is written
	// on to Stderr first, and the last 64 KiB are remembered for Result.Stderr.
	Capture bool
}

// Tree says what to run and how to end it.
type Tree struct {
	// Workers are started in this order, one by one; at least one.
	Workers []Worker
	// Grace is how long workers may live after SIGTERM; 0: SIGKILL follows right away.
	Grace time.Duration
	// Linger makes Run, after the last worker's end, wait for ctx to end before it ends what workers have left behind.
	Linger bool

	// Started and Ended, if set, are called as worker i has started and has ended, one call at a time and not from the
	// goroutine that supervises: they may take their time. Ended is called exactly once for every worker, also
	// for one that could not be started; Started before it unless the worker never ran.
	Started func(i, pid int)
	Ended   func(i int, r Result)

	// Source, if set, is told while Run lasts which of its signals the workers have had too; it costs one process of
	// about 0.3 MB, the sentinel. Result.Outside comes from it as well.
	Source *Source
	// JobControl stops this process when a terminal or a shell has stopped all live workers (SIGTSTP, SIGTTIN, SIGTTOU), so
	// that its parent, a shell, sees the job stopped. These signals do not stop it otherwise any more, also when Run has
	// returned: once a Go program has caught them they do not take their default course again.
	JobControl bool

	// Signals are sent, each once, to every live worker. Run receives from it until nothing of the tree is left. May be nil.
	Signals <-chan syscall.Signal
	// Deaf, once closed, gives workers that ignore SIGTERM but catch SIGABRT (Python's faulthandler) that signal: they
	// print their stacks and die of it, where somebody else is about to kill them. May be nil.
	Deaf <-chan struct{}
	// Kill, once closed, kills the tree at once: the second Ctrl-C. May be nil.
	Kill <-chan struct{}
}

// check finds what Run could not run.
func (t *Tree) check() error {
	if len(t.Workers) == 0 {
		return errors.New("cannot run a tree: no worker")
	}
	if t.Grace < 0 {
		return fmt.Errorf("cannot run a tree: its grace %v is negative", t.Grace)
	}
	for i, w := range t.Workers {
		if w.Path == "" {
			return fmt.Errorf("cannot run worker %d: no path", i)
		}
	}
	return nil
}
