package postmortem

import (
	"slices"
	"strings"
)

// hearsay are words with which libraries fail because another process has: what
// the worker says is that its peer is gone. In lower case.
//
// Sources: gloo/transport/tcp/pair.cc; c10d's TCPStore and socket.cpp; NCCL's
// ncclGetErrorString and torch's ProcessGroupNCCL; strerror(3).
var hearsay = []string{
	"connection closed by peer",
	"connection reset by peer",
	"connection was likely closed",
	"broken pipe",
	"socket closed",
	"ncclremoteerror",
	"remote process exited",
	"nccl communicator was aborted",
}

// Consequence tells whether these findings say that another worker failed before.
func (f Findings) Consequence() bool {
	return isHearsay(append([]string{f.Message}, f.Lines...))
}

// isHearsay tells whether a worker's last words say that another one failed before.
func isHearsay(words []string) bool {
	return slices.ContainsFunc(words, func(line string) bool {
		line = strings.ToLower(line)
		return slices.ContainsFunc(hearsay, func(said string) bool { return strings.Contains(line, said) })
	})
}
