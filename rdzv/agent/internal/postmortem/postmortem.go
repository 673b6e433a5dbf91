// Package postmortem determines why a worker failed, from what it left behind: the last lines of
// its stderr, torch's error file, the kernel's count of out-of-memory kills.
//
// What the job makes of a failure does not belong here, nor do sentences for people.
package postmortem

import (
	"slices"
	"strings"
)

// Findings are the result of [Examine]: the message and the lines that tell why a worker failed.
type Findings struct {
	// Message is one line that names the failure, such as "ValueError: no such file"; "" if
	// there is none.
	Message  string
	LastLine bool // Message is only the last line
	// Lines are the traceback, or the last lines of stderr.
	Lines []string
}

// Examine looks for the reason of a worker's failure in the end of its stderr, and in what it
// wrote for torch's errors module, see [NameErrorFile]. errorFile may be "". Without a traceback
// the last line of stderr names the failure, as that of sys.exit("text"), unless a signal killed
// the worker; lines that do not say what is wrong do not count.
func Examine(stderr []byte, errorFile string, killed bool) (f Findings) {
	f.Lines, f.Message, f.LastLine = lastLines(stderr, killed)
	if f.Message == "" && !killed {
		f.Message, f.LastLine = lastText(stderr), true
	}
	message, traceback := readErrorFile(errorFile)
	if traceback != "" {
		f.Lines = strings.Split(traceback, "\n")
	}
	if message != "" {
		f.Message, f.LastLine = message, false
	}
	return f
}

// Exception is the line of the last traceback in a text that names the exception; "" if there is
// none.
func Exception(text []byte) string {
	_, message, guessed := lastLines(text, false)
	if guessed {
		return ""
	}
	return message
}

// consequences are messages, in lower case, of libraries that lost the connection to a peer:
// another worker failed first.
//
// Sources: gloo/transport/tcp/pair.cc; c10d's TCPStore and socket.cpp; NCCL's
// ncclGetErrorString and torch's ProcessGroupNCCL; strerror(3).
var consequences = []string{
	"connection closed by peer",
	"connection reset by peer",
	"connection was likely closed",
	"broken pipe",
	"socket closed",
	"ncclremoteerror",
	"remote process exited",
	"nccl communicator was aborted",
}

// Consequence tells whether the failure seems to be the consequence of another worker's.
func (f Findings) Consequence() bool {
	text := f.text()
	return slices.ContainsFunc(consequences, func(message string) bool {
		return strings.Contains(text, message)
	})
}

// text is everything that is known of the failure, in lower case.
func (f Findings) text() string {
	return strings.ToLower(f.Message + "\n" + strings.Join(f.Lines, "\n"))
}
