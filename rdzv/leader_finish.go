package rdzv

import (
	"context"
	"fmt"
)

// settled is the value of signal/settled.
type settled struct {
	// Code is the exit code of a job that a signal ended, see endedCode.
	Code int `json:"code"`
	// Unsettled names the agents that had not settled at the timeout; "" if there are none.
	Unsettled string `json:"unsettled,omitempty"`
}

// writeSettled publishes that all agents have settled, or that the timeout has expired.
func (l *Leader) writeSettled(ctx context.Context) error {
	s := settled{Unsettled: l.unsettled()}
	if l.verdict.Kind == Ended {
		s.Code = endedCode(l.verdict.Signal, l.outcomes)
	}
	if err := put(ctx, l.client, l.keys.settled(), encode(s)); err != nil {
		return fmt.Errorf("cannot write that all agents of job %q have settled: %w", l.config.Job, err)
	}
	return nil
}

// unsettled names the agents that are neither settled nor lost.
func (l *Leader) unsettled() string {
	var names []string
	for _, m := range l.joined {
		if !m.settled && !m.lost {
			names = append(names, m.name())
		}
	}
	return list(cut(names))
}

// endedCode returns the exit code of a job that a signal ended. It is 128+signal if the
// signal, or rdzv because of it, terminated a worker, or if no worker had started. Otherwise
// it is the first nonzero code in the order of the outcomes, where signal n counts as 128+n.
// It is 0 if all workers succeeded, for example because a signal handler wrote a checkpoint.
func endedCode(signal int, outcomes []Outcome) int {
	code, ran := 0, false
	for _, o := range outcomes {
		for _, w := range o.Workers {
			ran = true
			switch {
			case w.Signal == signal, w.Stopped && w.Signal != 0:
				return 128 + signal
			case code == 0 && w.Signal != 0:
				code = 128 + w.Signal
			case code == 0:
				code = w.Code
			}
		}
	}
	if !ran {
		return 128 + signal
	}
	return code
}
