package wrap

import (
	"errors"
	"os"
	"syscall"
	"time"

	"rdzv/internal/boottime"
	"rdzv/wrap/internal/frames"
)

// The frames between an agent and a runner. Their bodies are JSON.

// Orders of an agent.
const (
	runTree    uint8 = 1 + iota // treeMessage, with files
	stopTree                    // stopOrder: ctx of Run has ended
	sendSignal                  // signalMessage
	startNow                    // Tree.StartNow is closed
	dumpStacks                  // Tree.DumpStacks is closed
	killTree                    // Tree.Kill is closed
	setLimit                    // limit: Tree.Lease has changed
	dumped                      // Tree.Dumping has returned
	readFile                    // question
	remaining                   // question
)

// Reports of a runner.
const (
	treeBegun     uint8 = 64 + iota // begunMessage
	workerStarted                   // startMessage
	workerEnded                     // endMessage
	dumpsFollow                     // []Dump
	logLost                         // lossMessage
	outputLost                      // lossMessage
	wrote                           // outputMessage
	allSuspended                    // a terminal or a shell has stopped all running workers
	treeEnded                       // doneMessage
	answered                        // answer
)

// treeMessage is a Tree, with its files in the order of their numbers in Files. JSON would change
// texts that are not UTF-8, and knows neither files nor the time that counts while a machine
// sleeps.
type treeMessage struct {
	Tree    Tree
	Agent   int // its pid
	Workers []workerMessage
	Held    bool // the last three files are a HeldSocket
	Limit   *limit
}

type workerMessage struct {
	Names     frames.Texts // Path, Dir, and Output.Tag
	Args, Env frames.Texts
	StartAt   instant
	Streams   [3]int // numbers of files; 0 is /dev/null
	Log       int    // the same; 0 is none
}

// messageOf is the message of a tree, and its files.
func messageOf(t *Tree) (m treeMessage, files []*os.File) {
	m = treeMessage{Tree: *t, Agent: os.Getpid()}
	numbers := map[*os.File]int{}
	number := func(f *os.File) int {
		if f == nil {
			return 0
		}
		// This resets the non-blocking mode that Go sets for pipes which it has created, and which few
		// programs expect; a mode set by other programs stays.
		_ = f.Fd()
		if numbers[f] == 0 {
			files = append(files, f)
			numbers[f] = len(files)
		}
		return numbers[f]
	}
	for i := range t.Workers {
		w := &t.Workers[i]
		wm := workerMessage{
			Names: frames.Texts{w.Path, w.Dir, ""}, Args: w.Args, Env: w.Env, StartAt: instantOf(w.StartAt),
			Streams: [3]int{number(w.Stdin), number(w.Stdout), number(w.Stderr)},
		}
		if o := w.Output; o != nil {
			wm.Names[2], wm.Log = o.Tag, number(o.Log)
		}
		m.Workers = append(m.Workers, wm)
	}
	if t.Lease != nil {
		l := t.Lease.limit()
		m.Limit = &l
	}
	if m.Held = t.Held != nil; m.Held {
		held := t.Held.files()
		files = append(files, held[:]...)
	}
	return m, files
}

// tree is the tree of a message with its files. Signals, functions and the lease are not in it.
func (m *treeMessage) tree(files []*os.File) (t *Tree, err error) {
	t = &m.Tree
	held := 0
	if m.Held {
		held = 3
	}
	own := len(files) - held
	if len(m.Workers) != len(t.Workers) || own < 0 {
		return nil, errors.New("cannot read a tree: it is not complete")
	}
	file := func(n int) (f *os.File) {
		switch {
		case n < 0 || n > own:
			err = errors.New("cannot read a tree: a file is missing")
		case n > 0:
			f = files[n-1]
		}
		return f
	}
	for i := range t.Workers {
		w, wm := &t.Workers[i], &m.Workers[i]
		if len(wm.Names) != 3 {
			return nil, errors.New("cannot read a tree: a name is missing")
		}
		w.Path, w.Dir, w.Args, w.Env = wm.Names[0], wm.Names[1], wm.Args, wm.Env
		w.StartAt = wm.StartAt.time()
		w.Stdin, w.Stdout, w.Stderr = file(wm.Streams[0]), file(wm.Streams[1]), file(wm.Streams[2])
		if w.Output != nil {
			w.Output.Tag, w.Output.Log = wm.Names[2], file(wm.Log)
		}
	}
	if m.Held {
		t.Held = &HeldSocket{files[own], files[own+1], files[own+2]}
	}
	if err == nil {
		err = t.check()
	}
	return t, err
}

// stopOrder is a Stop.
type stopOrder struct {
	Delivered          syscall.Signal
	At                 instant
	Groups, DumpStacks bool
}

// signalMessage is an Event. Groups sends it to the process groups of the workers.
type signalMessage struct {
	Signal syscall.Signal
	Shared bool
	At     instant
	Groups bool
}

func (m signalMessage) event() Event {
	return Event{Signal: m.Signal, Shared: m.Shared, At: m.At.time()}
}

func signalOf(e Event) signalMessage {
	return signalMessage{Signal: e.Signal, Shared: e.Shared, At: instantOf(e.At)}
}

// begunMessage says that a tree has been read. Terminal: its workers are in the process group of
// the agent, or of their task.
type begunMessage struct{ Terminal bool }

type startMessage struct {
	Worker, PID int
	At          instant // shortly before its start
	AllRead     bool    // stdout and stderr are read
}

type lossMessage struct {
	Worker int
	Stream string
	Reason *failure
	Bytes  int64
}

// endMessage is a Result, with what is known of the output of the worker.
type endMessage struct {
	Worker int
	Result Result
	Err    *failure
	Unread *failure
	Output outputMessage
}

// outputMessage is what LastOutput and Line know of a worker.
type outputMessage struct {
	Worker      int
	First, Last int64 // in Unix nanoseconds, 0 if nothing was written
	Line        []byte
	Traceback   []byte // it is the same as before if it is nil, and TracedAt is
	TracedAt    int64  // in Unix nanoseconds, 0 if there is none
	Within      bool   // what is shown ends within a line
	Lines       int64  // how many lines had been shown at the same place then
}

// doneMessage says that nothing of the tree is left, or why it was not run: then Ran is false.
type doneMessage struct {
	Ran     bool
	Ends    bool // the runner ends, because a start hangs in the kernel
	Unshown bool // not everything has been shown, because a terminal has been stopped (Ctrl-S)
	Err     *failure
	Output  []outputMessage // of the workers of which something is known
}

// question is about the processes of a runner. The answer has the same ID.
type question struct {
	ID   int
	Name []byte // of the file
}

type answer struct {
	ID        int
	Text      []byte
	Processes []Process
	Err       *failure
}

// instant is a time by package boottime, in ns, which is the same for all processes; 0 is none.
type instant int64

func instantOf(t time.Time) instant {
	if t.IsZero() {
		return 0
	}
	return instant(boottime.Now() + time.Until(t))
}

func (i instant) time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(i) - boottime.Now())
}
