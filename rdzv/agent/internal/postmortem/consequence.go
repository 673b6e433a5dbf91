package postmortem

import (
	"slices"
	"strings"
)

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
	return isConsequence(append([]string{f.Message}, f.Lines...))
}

func isConsequence(lines []string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		line = strings.ToLower(line)
		return slices.ContainsFunc(consequences, func(message string) bool {
			return strings.Contains(line, message)
		})
	})
}
