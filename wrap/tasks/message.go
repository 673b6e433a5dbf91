package tasks

import "rdzv/wrap/internal/frames"

// Frames between the agent and a task.
const (
	welcome     uint8 = 1 + iota // of the agent: it has accepted the connection
	exit                         // of the agent: exitOrder
	hello                        // of a task: helloMessage, with the socket of its runner and more
	otherRunner                  // of a task: the pid of another runner, with its socket
	gotSignal                    // of a task: the number of a signal
)

// helloMessage is a Hello, with the pid of the runner.
type helloMessage struct {
	PID, Runner        int
	Args, Env, Devices frames.Texts
	Dir                []byte
}

// exitOrder is that of Task.Exit.
type exitOrder struct{ Code, Turn int }
