package rdzv

import "time"

// Outcome is how the workers of one agent ended. An agent whose workers were
// never started has none.
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
	Text      string        `json:"text,omitempty"` // what it said of its failure, one line
}

// ok tells whether the worker succeeded.
func (w Worker) ok() bool { return w.Code == 0 && w.Signal == 0 }

// failedAlone tells whether the worker failed and nobody had told it to stop.
func (w Worker) failedAlone() bool { return !w.ok() && !w.Stopped }

// settlement is the value of signal/gone.
type settlement struct {
	// Code is the first exit code other than 0 in the order of the outcomes, where
	// a job was ended by a signal; 128+n for a worker that died of signal n.
	Code int `json:"code"`
	// Unsettled is how many agents had said nothing when the time was up.
	Unsettled int `json:"unsettled,omitempty"`
}

// endedCode is the exit code of a job that a signal ended: 128+signal if a worker
// died of it, else the first other code, 0 if all workers ended well (they had
// a handler that wrote a checkpoint).
func endedCode(signal int, outcomes []Outcome) int {
	code := 0
	for _, o := range outcomes {
		for _, w := range o.Workers {
			switch {
			case w.Signal == signal:
				return 128 + signal
			case code == 0 && w.Signal != 0:
				code = 128 + w.Signal
			case code == 0:
				code = w.Code
			}
		}
	}
	return code
}
