package agent

import (
	"context"
	"encoding/json"
	"os"
	"syscall"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/inspect"
	"rdzv/rdzv/agent/internal/host"
)

// stopJob ends the job because its user has asked this agent for it; by says how, for all nodes. It
// ends a later attempt too, if the present one ends for another reason.
func (in *interrupts) stopJob(by string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped != "" {
		return
	}
	in.stopped = by
	in.interrupt(&SignalError{Signal: syscall.SIGTERM, By: by})
	if in.session != nil {
		in.stopSession()
	}
}

func (in *interrupts) stopSession() {
	s, by := in.session, in.stopped
	in.write(func(ctx context.Context) { _ = s.Stop(ctx, by) })
}

// stop answers inspect.StopQuestion when the job has ended as far as this agent knows.
func (o *observed) stop(ctx context.Context, by string) ([]byte, []string, error) {
	o.mu.Lock()
	session, id, stop := o.session, o.id, o.stopJob
	o.mu.Unlock()
	stop(by)
	if session != nil {
		select {
		case <-session.Context().Done():
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
	self := rdzv.Peer{ID: id, Host: host.Name(), PID: os.Getpid()}
	value, err := json.Marshal(inspect.Observation{Answers: []rdzv.Answer{{Peer: self}}})
	return value, []string{id}, err
}
