package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"rdzv/rdzv"
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

// isHearsay tells whether a worker's last words say that another one failed before.
func isHearsay(words []string) bool {
	return slices.ContainsFunc(words, func(line string) bool {
		line = strings.ToLower(line)
		return slices.ContainsFunc(hearsay, func(said string) bool { return strings.Contains(line, said) })
	})
}

// hearsayWait is how long such a failure waits for the one that it came of. A
// process that fails closes its connections some time before it has ended: its
// peers may be faster to their ends than it is to its own.
const hearsayWait = 500 * time.Millisecond

// failed tells the job of a worker's failure: at once, unless it came of another's,
// which then is to be told first.
func (g *agent) failed(w rdzv.Worker, words []string) {
	if !isHearsay(words) {
		g.fail(w)
		return
	}
	g.tally.wg.Go(func() {
		late := time.NewTimer(hearsayWait)
		defer late.Stop()
		select {
		case <-g.session.Context().Done():
		case <-late.C:
		}
		g.fail(w)
	})
}

func (g *agent) fail(w rdzv.Worker) {
	g.tell(func(ctx context.Context) error { return g.session.Fail(ctx, w) })
	g.count(w)
}
