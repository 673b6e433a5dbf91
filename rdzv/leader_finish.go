package rdzv

import (
	"context"
	"fmt"
)

// settled is the value of signal/settled.
type settled struct {
	// Code is the exit code of a job that was ended by a signal, see endedCode.
	Code int `json:"code"`
	// Unsettled names the agents that had said nothing when the time was up; empty
	// if there are none.
	Unsettled string `json:"unsettled,omitempty"`
}

// writeSettled tells all that there is nothing more to wait for.
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

// unsettled names the agents that have said nothing, though they are not lost.
func (l *Leader) unsettled() string {
	var silent []string
	for _, a := range l.joined {
		if !a.settled && !a.lost {
			silent = append(silent, l.nameOf(a))
		}
	}
	return list(cut(silent))
}

// endedCode is the exit code of a job that a signal ended: 128+signal if a worker
// died of it, or of being stopped because of it, or if none had begun; else the
// first other code in the order of the outcomes, 128+n for a worker that died of
// signal n, and 0 if all workers ended well (they had a handler that wrote a
// checkpoint).
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
