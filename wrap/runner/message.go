package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"syscall"
	"time"

	"rdzv/internal/boottime"
	"rdzv/wrap"
)

// kind is the type of a frame.
type kind uint8

// Frames from the agent to a runner.
const (
	welcome      kind = 1 + iota // the agent has accepted the connection
	runTree                      // spec, with files
	stopTree                     // stopOrder: ctx of Run has ended
	sendSignal                   // signalMessage: of Tree.Signals
	startNow                     // Tree.StartNow is closed
	dumpStacks                   // Tree.DumpStacks is closed
	killTree                     // Tree.Kill is closed
	leaseChanged                 // Tree.Lease has changed, but not by a renewal
	dumped                       // Tree.Dumping has returned
	readFile                     // question
	remaining                    // question
	exit                         // exitOrder
)

// Frames from a runner to the agent.
const (
	hello       kind = 64 + iota // helloMessage, with files
	started                      // startMessage
	ended                        // endMessage
	dumping                      // []wrap.Dump
	logLost                      // lossMessage
	outputLost                   // lossMessage
	treeEnded                    // doneMessage: Run has returned
	gotSignal                    // signalMessage
	answerFrame                  // answer
)

type helloMessage struct {
	PID                int
	Args, Env, Devices texts
	Dir                text
}

// stopOrder is a wrap.Stop. Delivered is a signal that the workers of the agent have received, and
// those of the runner are likely to.
type stopOrder struct {
	Delivered          syscall.Signal
	Groups, DumpStacks bool
}

// exitOrder says with which code the runner exits, and when; see Exit.
type exitOrder struct{ Code, Turn int }

type signalMessage struct {
	Signal syscall.Signal
	Shared bool
	At     instant
}

func messageOf(e wrap.Event) signalMessage {
	return signalMessage{e.Signal, e.Shared, instantOf(e.At)}
}

func (m signalMessage) event() wrap.Event {
	return wrap.Event{Signal: m.Signal, Shared: m.Shared, At: m.At.time()}
}

type startMessage struct{ Worker, PID int }

type lossMessage struct {
	Worker int
	Stream text
	Reason *failure
	Bytes  int64
}

type endMessage struct {
	Worker              int
	PID, Code           int
	Signal, GroupSignal syscall.Signal
	Stopped, Joined     bool
	Took                time.Duration
	Stderr              []byte
	Err                 *failure
}

func endOf(i int, r wrap.Result) endMessage {
	return endMessage{
		Worker: i, PID: r.PID, Code: r.Code, Signal: r.Signal, GroupSignal: r.GroupSignal,
		Stopped: r.Stopped, Joined: r.Joined, Took: r.Took, Stderr: r.Stderr, Err: failureOf(r.Err),
	}
}

func (m *endMessage) result() wrap.Result {
	return wrap.Result{
		PID: m.PID, Code: m.Code, Signal: m.Signal, GroupSignal: m.GroupSignal,
		Stopped: m.Stopped, Joined: m.Joined, Took: m.Took, Stderr: m.Stderr, Err: m.Err.error(),
	}
}

// doneMessage says that Run has returned, with an error or nil. Its results came before, each in an
// endMessage; Ran says that there are some.
type doneMessage struct {
	Ran bool
	Err *failure
}

// question is about the task. The answer has the same ID.
type question struct {
	ID   int
	Name text // of the file
}

type answer struct {
	ID        int
	Text      []byte         `json:",omitempty"`
	Processes []wrap.Process `json:",omitempty"`
	Err       *failure       `json:",omitempty"`
}

// text is a text without NUL that need not be valid UTF-8, which JSON would change. texts are
// several.
type (
	text  string
	texts []string
)

func (t text) MarshalJSON() ([]byte, error) { return json.Marshal([]byte(t)) }

func (t *text) UnmarshalJSON(b []byte) error {
	var s []byte
	err := json.Unmarshal(b, &s)
	*t = text(s)
	return err
}

func (t texts) MarshalJSON() ([]byte, error) {
	var all bytes.Buffer
	for _, s := range t {
		all.WriteString(s)
		all.WriteByte(0)
	}
	return json.Marshal(all.Bytes())
}

func (t *texts) UnmarshalJSON(b []byte) error {
	var all []byte
	if err := json.Unmarshal(b, &all); err != nil || len(all) == 0 {
		return err
	}
	list, found := strings.CutSuffix(string(all), "\x00")
	if !found {
		return errors.New("a list of texts has no end")
	}
	*t = strings.Split(list, "\x00")
	return nil
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
