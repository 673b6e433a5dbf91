package rdzv

import (
	"fmt"
	"time"
)

// Kind is the manner in which a job ended.
type Kind string

const (
	Done       Kind = "done"       // all workers succeeded
	Failed     Kind = "failed"     // a worker failed first
	Ended      Kind = "ended"      // somebody ended the job by a signal
	Lost       Kind = "lost"       // an agent went without a word
	Unready    Kind = "unready"    // the job was not started: a check failed
	Incomplete Kind = "incomplete" // not all agents came in time
	Straggling Kind = "straggling" // workers were still running long after others had ended well
	Moved      Kind = "moved"      // all go to another store, before anything was started
)

// Verdict is how the job ended. The store keeps the first one; it is the cause
// of [Session.Context]'s end, so it is also an error.
type Verdict struct {
	Kind Kind   `json:"kind"`
	By   string `json:"by,omitempty"`   // id of the agent that it is about
	Host string `json:"host,omitempty"` // that agent's node
	PID  int    `json:"pid,omitempty"`  // the worker's process, or the agent's if it was lost

	Rank      int           `json:"rank"` // of the worker, or Any
	LocalRank int           `json:"local_rank"`
	Code      int           `json:"code,omitempty"`   // its exit code; for Unready that of the job
	Signal    int           `json:"signal,omitempty"` // what it died of; for Ended what ended the job
	Took      time.Duration `json:"took,omitempty"`   // from its start to its end
	Text      string        `json:"text,omitempty"`   // for people; of Unready one problem a line
	Hint      string        `json:"hint,omitempty"`   // what to try, for people, a line each
}

func (v *Verdict) Error() string {
	switch v.Kind {
	case Done:
		return "all workers succeeded"
	case Failed:
		return fmt.Sprintf("rank %d on %s failed first: %s", v.Rank, v.Host, v.Status())
	case Ended:
		return fmt.Sprintf("ended by signal %d on %s", v.Signal, v.Host)
	default:
		return v.Text
	}
}

// Status says how the worker of a Failed verdict ended.
func (v *Verdict) Status() string {
	if v.Signal != 0 {
		return fmt.Sprintf("signal %d", v.Signal)
	}
	return fmt.Sprintf("exit %d", v.Code)
}
