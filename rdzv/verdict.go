package rdzv

import (
	"fmt"
	"slices"
	"strings"
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

	Rank      int           `json:"rank"` // of the worker, or the first one of the agent, or Unknown
	LocalRank int           `json:"local_rank"`
	Ranks     int           `json:"ranks,omitempty"`  // Lost: how many workers the agent has, from Rank on
	Code      int           `json:"code,omitempty"`   // the worker's exit code
	Signal    int           `json:"signal,omitempty"` // what it died of; for Ended what ended the job
	Took      time.Duration `json:"took,omitempty"`   // from its start to its end

	// Text is the worker's message if it Failed; what was Lost if that is not the agent
	// itself; and why the job was Unready if that is no member's problem.
	Text string `json:"text,omitempty"`

	Problems     []NodeProblem `json:"problems,omitempty"` // Unready, Incomplete: of the members
	MoreProblems int           `json:"more_problems,omitempty"`
	Roster       *Roster       `json:"roster,omitempty"`     // Incomplete
	Stragglers   *Stragglers   `json:"stragglers,omitempty"` // Straggling
}

func failedVerdict(id, host string, w Worker) Verdict {
	return Verdict{
		Kind: Failed, By: id, Host: host, PID: w.PID,
		Rank: w.Rank, LocalRank: w.LocalRank, Code: w.Code, Signal: w.Signal, Took: w.Took, Text: w.Text,
	}
}

// unready is the verdict on a job that could not begin for this reason.
func unready(text string) Verdict {
	v := verdictOf(Unready)
	v.Text = text
	return v
}

// verdictOf is a verdict on no worker in particular.
func verdictOf(kind Kind) Verdict { return Verdict{Kind: kind, Rank: Unknown, LocalRank: Unknown} }

func (v *Verdict) Error() string {
	switch {
	case v.Kind == Done:
		return "all workers succeeded"
	case v.Kind == Failed:
		return fmt.Sprintf("rank %d on %s failed first: %s", v.Rank, v.Host, v.Status())
	case v.Kind == Ended:
		return fmt.Sprintf("the agent on %s (pid %d) received signal %d", v.Host, v.PID, v.Signal)
	case v.Kind == Moved:
		return "all agents move to another store"
	case v.Kind == Lost && v.Text == "":
		return v.lossText()
	case v.Kind == Straggling && v.Stragglers != nil:
		return v.Stragglers.String()
	case v.Kind == Incomplete && v.Roster != nil:
		if problems := v.problemsText(); problems != "" {
			return v.Roster.String() + "\n" + problems
		}
		return v.Roster.String()
	case len(v.Problems) > 0:
		return v.problemsText()
	}
	return v.Text
}

// Status says how the worker of a Failed verdict ended.
func (v *Verdict) Status() string {
	if v.Signal != 0 {
		return fmt.Sprintf("signal %d", v.Signal)
	}
	return fmt.Sprintf("exit %d", v.Code)
}

// Hints are what to try against the problems, each once.
func (v *Verdict) Hints() (hints []string) {
	for _, p := range v.Problems {
		if p.Hint != "" && !slices.Contains(hints, p.Hint) {
			hints = append(hints, p.Hint)
		}
	}
	return hints
}

// lossText says that an agent is lost.
func (v *Verdict) lossText() string {
	if v.PID == 0 {
		return "lost an agent that was joining: it disconnected unexpectedly"
	}
	return "lost " + v.agentName() + ": it disconnected unexpectedly"
}

// agentName names the agent of a Lost verdict.
func (v *Verdict) agentName() string {
	what := "an agent"
	switch {
	case v.Rank != Unknown && v.Ranks > 1:
		what = fmt.Sprintf("the agent of ranks %d to %d", v.Rank, v.Rank+v.Ranks-1)
	case v.Rank != Unknown:
		what = fmt.Sprintf("the agent of rank %d", v.Rank)
	}
	return fmt.Sprintf("%s (pid %d on %s)", what, v.PID, v.Host)
}

// problemsText is a line for each problem.
func (v *Verdict) problemsText() string {
	var lines []string
	for _, p := range v.Problems {
		lines = append(lines, p.String())
	}
	if v.MoreProblems > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", v.MoreProblems))
	}
	return strings.Join(lines, "\n")
}
