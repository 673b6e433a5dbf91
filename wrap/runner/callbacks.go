package runner

import (
	"time"

	"rdzv/wrap"
)

// dumpingWait is how long the call of Tree.Dumping in the agent may take.
const dumpingWait = 200 * time.Millisecond

// setCallbacks makes Run tell the agent what happens. A send that fails means that the agent is
// lost, which the server finds out.
func (a *attempt) setCallbacks() {
	t, s := &a.tree, a.socket
	t.Started = func(i, pid int) { _ = s.send(started, startMessage{i, pid}) }
	t.Ended = func(i int, r wrap.Result) { _ = s.send(ended, endOf(i, r)) }
	t.Dumping = func(dumps []wrap.Dump) {
		if s.send(dumping, dumps) != nil {
			return
		}
		late := time.NewTimer(dumpingWait)
		defer late.Stop()
		select {
		case <-a.returns:
		case <-late.C:
		}
	}
	t.LogLost = func(i int, reason error, bytes int64) {
		_ = s.send(logLost, lossMessage{i, "", failureOf(reason), bytes})
	}
	t.OutputLost = func(i int, stream string, reason error, bytes int64) {
		_ = s.send(outputLost, lossMessage{i, text(stream), failureOf(reason), bytes})
	}
}
