// Package restart decides whether all workers of a job are started again after a failure, and when.
// It is a function of the failures so far: it reads no clock and starts nothing.
package restart

import (
	"slices"
	"strings"
	"time"
)

// Policy says which failures are followed by another attempt. The zero value is none.
type Policy struct {
	Max   int   // restarts of the whole job
	Never []int // exit codes after which there is none, besides those of [NeverCodes]
}

// NeverCodes are the exit codes that another attempt would not change: wrong usage (2), "do not
// requeue" (93), those of "rdzv exec" if a node cannot run its workers (121), if agents do not join
// (124) or if it fails itself (125), and those of a program that cannot be executed (126) or is
// missing (127).
func NeverCodes() []int { return []int{2, 93, 121, 124, 125, 126, 127} }

// LostCode is the exit code of a job that has lost an agent.
const LostCode = 123

// Failure is the first failure of an attempt.
type Failure struct {
	Code int `json:"code"` // exit code, 128+n for signal n
	// Message is compared with that of the failure before, see Repeated. It is the program's own
	// text, such as that of an exception, see Essence; "" if a signal killed it, or if it reports
	// the failure of another worker.
	Message string        `json:"message,omitempty"`
	Took    time.Duration `json:"took"` // from the worker's start to its end
}

// Reason is why there is no other attempt.
type Reason string

const (
	Exhausted Reason = "max_restarts"  // there have been Policy.Max restarts
	Code      Reason = "exit_code"     // the exit code is one after which there is none
	Repeated  Reason = "same_message"  // two attempts failed early with the same message: a bug
	Import    Reason = "import"        // the first attempt failed early because of an import
	Lost      Reason = "agent_missing" // no agent takes the place of a lost one, or one did not settle
	MPI       Reason = "mpi"           // the launcher lets each task run one MPI program
)

// Decision says whether and when another attempt follows a failure, or why none does.
type Decision struct {
	Restart bool
	Delay   time.Duration // before the workers start
	Reason  Reason        // if Restart is false; "" for a policy without restarts
}

// Soon is how soon after its start a worker fails early.
const Soon = time.Minute

const (
	firstDelay = time.Second
	maxDelay   = time.Minute
)

// Decide decides after the last of these failures, each of which ended one attempt of the job.
func (p Policy) Decide(failures []Failure) Decision {
	last := failures[len(failures)-1]
	switch {
	case p.Max == 0:
		return Decision{}
	case slices.Contains(NeverCodes(), last.Code), slices.Contains(p.Never, last.Code):
		return Decision{Reason: Code}
	case repeated(failures):
		return Decision{Reason: Repeated}
	case len(failures) == 1 && last.Took < Soon && ofImport(last.Message):
		return Decision{Reason: Import}
	case len(failures) > p.Max:
		return Decision{Reason: Exhausted}
	}
	return Decision{Restart: true, Delay: delay(failures)}
}

// repeated tells whether the last two failures were early and have the same message.
func repeated(failures []Failure) bool {
	n := len(failures)
	if n < 2 {
		return false
	}
	before, last := failures[n-2], failures[n-1]
	return last.Message != "" && last.Message == before.Message && last.Took < Soon &&
		before.Took < Soon
}

// ofImport tells whether python did not find a module, or could not load it. A later attempt of a
// program that has once run may fail so because its file system fails.
func ofImport(message string) bool {
	return strings.HasPrefix(message, "ModuleNotFoundError: ") ||
		strings.HasPrefix(message, "ImportError: ") || strings.Contains(message, ": No module named ")
}

// delay is 0 after a failure that is not early, or that no other early one precedes; then it
// doubles with each early failure.
func delay(failures []Failure) time.Duration {
	var d time.Duration
	for i := len(failures) - 2; i >= 0 && failures[i].Took < Soon && d < maxDelay; i-- {
		d = min(max(firstDelay, 2*d), maxDelay)
	}
	if failures[len(failures)-1].Took >= Soon {
		return 0
	}
	return d
}
