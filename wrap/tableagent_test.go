package wrap_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/boottime"
	"rdzv/internal/procfs"
	"rdzv/wrap"
)

// treeEnv has, as JSON, the tree of an agent of the table.
const treeEnv = "WRAP_TABLE_TREE"

// A tree is what an agent of the table runs.
type tree struct {
	Workers     []program
	Grace       time.Duration
	Linger      bool
	FrozenLimit time.Duration
	Ended       bool          // ctx ends before Run
	Leased      time.Duration // the order "lease" renews the lease for this time
}

// A program is a worker: a script of a shell, or the file Path.
type program struct {
	Script string
	Path   string
	Log    string // its output is read, and written to this file too
}

// tableAgent is an agent that does what the lines of its stdin say (see orders), and prints what
// Run reports, in lines that begin with "agent: ".
var tableAgent = wrap.AddRole("agent of the table", func() {
	var t tree
	if err := json.Unmarshal([]byte(os.Getenv(treeEnv)), &t); err != nil {
		say("cannot read the tree: %v", err)
		return
	}
	ctx, end := context.WithCancelCause(context.Background())
	if t.Ended {
		end(nil)
	}
	stacks, kill, signals := make(chan struct{}), make(chan struct{}), make(chan wrap.Event)
	lease := &wrap.Lease{}
	tree := wrap.Tree{
		Lease: lease, Grace: t.Grace, Linger: t.Linger, FrozenLimit: t.FrozenLimit,
		DumpStacks: stacks, Kill: kill, Signals: signals,
		Started: func(i, pid int) { say("started %d %d", i, pid) },
		Ended:   func(i int, r wrap.Result) { say("ended %d %s", i, outcome(r)) },
		Dumping: func(all []wrap.Dump) {
			for _, d := range all {
				say("dumping %d, ignores SIGTERM: %t", d.Worker, d.IgnoresTerm)
			}
		},
		LogLost: func(i int, reason error, bytes int64) {
			say("log of %d lost: %v, some bytes: %t", i, root(reason), bytes > 0)
		},
		Source: wrap.Signals(syscall.SIGTERM),
	}
	for _, p := range t.Workers {
		tree.Workers = append(tree.Workers, p.worker())
	}
	go orders(map[string]func(){
		"end":           func() { end(nil) },
		"end delivered": func() { end(&wrap.Stop{Delivered: syscall.SIGTERM}) },
		"end stacks":    func() { end(&wrap.Stop{DumpStacks: true}) },
		"stacks":        func() { close(stacks) },
		"signal":        func() { signals <- wrap.Event{Signal: syscall.SIGUSR1} },
		"kill":          sync.OnceFunc(func() { close(kill) }),
		"lease":         func() { lease.Renew(boottime.Now() + t.Leased) },
		"renew":         func() { lease.Renew(boottime.Now() + never) },
		"revoke":        lease.Revoke,
	})
	results, err := wrap.Run(ctx, tree)
	if left := leftNow(); len(left) > 0 {
		say("processes left: %v", left)
	}
	var texts []string
	for _, r := range results {
		texts = append(texts, outcome(r))
	}
	if err != nil {
		texts = append(texts, "error: "+wordsOf(err))
	}
	say("returned %s", strings.Join(texts, "; "))
})

// leftNow lists what runs of the tree of this process.
func leftNow() []int {
	pids, _ := procfs.Children(procfs.System, os.Getpid())
	for _, p := range wrap.Marked(os.Getenv(wrap.MarkerEnv)) {
		if p.PID != os.Getpid() {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

func say(format string, args ...any) {
	os.Stdout.WriteString("agent: " + fmt.Sprintf(format, args...) + "\n") // one write: one line
}

func (p program) worker() wrap.Worker {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, wrap.RoleEnv+"=") || strings.HasPrefix(v, treeEnv+"=")
	})
	w := wrap.Worker{
		Path: "/bin/sh", Args: []string{"sh", "-c", p.Script}, Env: env,
		Stdout: os.Stdout, Stderr: os.Stderr,
	}
	if p.Path != "" {
		w.Path, w.Args = p.Path, nil
	}
	if p.Log != "" {
		log, err := os.OpenFile(p.Log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			say("cannot open the log: %v", err)
		}
		w.Output = &wrap.Output{Log: log}
	}
	return w
}

// orders does what the lines of stdin say.
func orders(do map[string]func()) {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		f, found := do[in.Text()]
		if !found {
			say("no order %q", in.Text())
			continue
		}
		f()
		say("has got %q", in.Text())
	}
}

// outcome is a result in words: a code or a signal, and what else is to be known.
func outcome(r wrap.Result) string {
	words := []string{strconv.Itoa(r.Code)}
	if r.Signal != 0 {
		words[0] = unix.SignalName(r.Signal)
	}
	if r.Stopped {
		words = append(words, "stopped")
	}
	if r.PID == 0 {
		words = append(words, "not started")
	}
	if r.Err != nil {
		words = append(words, wordsOf(r.Err))
	}
	return strings.Join(words, ", ")
}

// wordsOf is an error in words that do not say by which mechanism a tree is run.
func wordsOf(err error) string {
	switch {
	case errors.Is(err, wrap.ErrRunner):
		return "supervision lost"
	}
	return root(err).Error()
}

// root is the innermost cause of an error.
func root(err error) error {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err
}
