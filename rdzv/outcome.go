package rdzv

import (
	"slices"
	"time"
)

// Outcome is how the workers of one agent ended.
type Outcome struct {
	Host    string   `json:"host"`
	Workers []Worker `json:"workers"`
}

// Worker is how one worker ended.
type Worker struct {
	Rank      int           `json:"rank"`
	LocalRank int           `json:"local_rank"`
	PID       int           `json:"pid"`
	Code      int           `json:"code"`              // exit code
	Signal    int           `json:"signal,omitempty"`  // what it died of
	Stopped   bool          `json:"stopped,omitempty"` // it was told to stop before it ended
	Took      time.Duration `json:"took"`
	Text      string        `json:"text,omitempty"` // what it said of its failure, one line; at most 2 KiB are kept
}

// ok tells whether the worker succeeded.
func (w Worker) ok() bool { return w.Code == 0 && w.Signal == 0 }

// failedAlone tells whether the worker failed and nobody had told it to stop.
func (w Worker) failedAlone() bool { return !w.ok() && !w.Stopped }

// newOutcome is what one agent says of its workers, small enough to be read. The
// texts give way where there are too many.
func newOutcome(host string, workers []Worker) Outcome {
	o := Outcome{Host: host, Workers: slices.Clone(workers)}
	budget := maxValue / 16 // one byte may take six
	for i := range o.Workers {
		w := &o.Workers[i]
		w.Text = clip(w.Text)
		if budget -= len(w.Text); budget < 0 {
			w.Text = ""
		}
	}
	return o
}

// failed finds the worker whose failure is the outcome's: one that failed on its
// own if there is one.
func (o Outcome) failed() (Worker, bool) {
	for _, is := range []func(Worker) bool{Worker.failedAlone, func(w Worker) bool { return !w.ok() }} {
		if i := slices.IndexFunc(o.Workers, is); i >= 0 {
			return o.Workers[i], true
		}
	}
	return Worker{}, false
}
