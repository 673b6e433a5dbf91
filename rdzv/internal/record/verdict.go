package record

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-multierror"
)

// Kind is how a job ended.
type Kind string

const (
	Done       Kind = "done"       // all workers succeeded
	Failed     Kind = "failed"     // a worker failed first
	Ended      Kind = "ended"      // an agent received a signal
	Stopped    Kind = "stopped"    // its user has ended it by a command
	Lost       Kind = "lost"       // an agent disconnected unexpectedly
	Unready    Kind = "unready"    // an agent cannot run its workers, or no world can be agreed
	Incomplete Kind = "incomplete" // not all agents joined in time
	Straggling Kind = "straggling" // workers still ran long after another one succeeded
	Stalled    Kind = "stalled"    // all workers ran, and none made progress
	Moved      Kind = "moved"      // all agents look for the store again; no worker was started
)

// Verdict is how the job ended. The store keeps the first one. It is an error because it is
// the cause of the end of [Session.Context].
type Verdict struct {
	Kind Kind   `json:"kind"`
	By   string `json:"by,omitempty"`   // ID of the agent that it is about
	Host string `json:"host,omitempty"` // that agent's node
	PID  int    `json:"pid,omitempty"`  // of the worker if it Failed, else of the agent

	// Rank is that of the worker, or of the first worker of the agent, or Unknown.
	Rank        int           `json:"rank"`
	LocalRank   int           `json:"local_rank"`
	Ranks       int           `json:"ranks,omitempty"`        // Lost: number of workers of the agent
	Code        int           `json:"code,omitempty"`         // the worker's exit code
	Signal      int           `json:"signal,omitempty"`       // that terminated it, or Ended the job
	RanFor      time.Duration `json:"ran_for,omitempty"`      // from its start to its end
	ReportDelay time.Duration `json:"report_delay,omitempty"` // from its end to this verdict
	// OOM says that the kernel's out-of-memory killer has killed a process of the worker's cgroup.
	OOM bool `json:"oom,omitempty"`
	// Shared says that the agent's workers have received the signal that Ended the job too: its
	// sender probably sends it to the other agents and their workers.
	Shared bool `json:"shared,omitempty"`
	// Caller says that the agent has Ended the job because its caller wants it, as after Signal.
	Caller bool `json:"caller,omitempty"`
	// Withdrawn says that the signal is for this agent alone, if another attempt can follow without
	// it: see Session.Withdraw.
	Withdrawn bool `json:"withdrawn,omitempty"`

	// Text is the worker's error message (Failed), what was lost if not the agent itself (Lost),
	// why no world can be agreed (Unready), who has Stopped the job, or Ended it if PID is 0,
	// otherwise why that does not go on without the agent.
	Text     string `json:"text,omitempty"`
	LastLine bool   `json:"last_line,omitempty"` // Failed: see Worker
	// Silent is how long a Lost agent was not heard, if that is why; otherwise 0.
	Silent time.Duration `json:"silent,omitempty"`
	// Final says that no other attempt follows a loss, because its agent cannot run workers any
	// more.
	Final bool `json:"final,omitempty"`

	Problems     []NodeProblem `json:"problems,omitempty"` // Unready, Incomplete
	MoreProblems int           `json:"more_problems,omitempty"`
	Roster       *Roster       `json:"roster,omitempty"`     // Incomplete
	Stragglers   *Stragglers   `json:"stragglers,omitempty"` // Straggling
	Stall        *Stall        `json:"stall,omitempty"`      // Stalled
}

// FailedVerdict returns the verdict about a failed worker of an agent.
func FailedVerdict(id, host string, w Worker) Verdict {
	return Verdict{
		Kind: Failed, By: id, Host: host, PID: w.PID,
		Rank: w.Rank, LocalRank: w.LocalRank,
		Code: w.Code, Signal: w.Signal, RanFor: w.RanFor, OOM: w.OOM,
		ReportDelay: w.ReportDelay, Text: w.Text, LastLine: w.LastLine,
	}
}

func NotReady(text string) Verdict {
	v := VerdictOf(Unready)
	v.Text = text
	return v
}

// VerdictOf returns a verdict that is not about a worker.
func VerdictOf(kind Kind) Verdict { return Verdict{Kind: kind, Rank: Unknown, LocalRank: Unknown} }

// MayRestart tells whether another attempt may follow in a job with restarts.
func (v *Verdict) MayRestart() bool {
	return v.Kind == Failed || v.Kind == Stalled || v.Kind == Lost && !v.Final || v.Withdrawn
}

// LostAgent tells whether the agent itself is lost. One that has lost something else, such as its
// holder, is a member of the next attempt.
func (v *Verdict) LostAgent() bool { return v.Kind == Lost && v.Text == "" }

func (v *Verdict) Error() string {
	switch {
	case v.Kind == Done:
		return "all workers succeeded"
	case v.Kind == Failed && v.Signal != 0:
		return fmt.Sprintf("rank %d on %s failed first: signal %d", v.Rank, v.Host, v.Signal)
	case v.Kind == Failed:
		return fmt.Sprintf("rank %d on %s failed first: exit %d", v.Rank, v.Host, v.Code)
	case v.Kind == Ended && v.PID == 0:
		return v.endedInStore()
	case v.Withdrawn && v.Caller:
		return v.Host + " leaves the job: stopped by its caller"
	case v.Withdrawn:
		return v.Host + " leaves the job: received SIGTERM"
	case v.Kind == Ended && v.Caller:
		return fmt.Sprintf("the agent on %s (pid %d) was stopped by its caller", v.Host, v.PID)
	case v.Kind == Ended:
		return fmt.Sprintf("the agent on %s (pid %d) received signal %d", v.Host, v.PID, v.Signal)
	case v.Kind == Stopped:
		return v.Text + " ended the job"
	case v.Kind == Moved:
		return "all agents look for the store again"
	case v.LostAgent() && v.PID == 0:
		return "lost an agent that was joining: it disconnected unexpectedly"
	case v.LostAgent():
		return "lost " + AgentName(*v) + ": " + HowLost(v.Silent)
	case v.Kind == Straggling && v.Stragglers != nil:
		return v.Stragglers.String()
	case v.Kind == Stalled && v.Stall != nil:
		return v.Stall.String()
	case v.Kind == Incomplete && v.Roster != nil && len(v.Problems) > 0:
		return v.Roster.String() + "\n" + v.Unwrap().Error()
	case v.Kind == Incomplete && v.Roster != nil:
		return v.Roster.String()
	case len(v.Problems) > 0:
		return v.Unwrap().Error()
	}
	return v.Text
}

// HowLost says how an agent was lost that was not heard for some time, or 0.
func HowLost(silent time.Duration) string {
	if silent > 0 {
		return fmt.Sprintf("it was silent for %v", silent)
	}
	return "it disconnected unexpectedly"
}

// endedInStore is the message of a verdict that no agent has written: docs/reference/files.md tells
// users how to end a job with etcdctl.
func (v *Verdict) endedInStore() string {
	message := "the job was ended through the store"
	if v.Text != "" {
		message += ": " + v.Text
	}
	return message
}

// Unwrap returns the problems of all nodes, each a NodeProblem, as one error; nil if there are
// none.
func (v *Verdict) Unwrap() error {
	all := &multierror.Error{ErrorFormat: oneLineEach}
	for _, p := range v.Problems {
		all = multierror.Append(all, p)
	}
	if v.MoreProblems > 0 {
		all = multierror.Append(all, fmt.Errorf("and %d more", v.MoreProblems))
	}
	return all.ErrorOrNil()
}

// oneLineEach formats several errors.
func oneLineEach(errs []error) string { return errors.Join(errs...).Error() }

// Hints returns the suggestions about the problems, each once.
func (v *Verdict) Hints() (hints []string) {
	for _, p := range v.Problems {
		if p.Hint != "" && !slices.Contains(hints, p.Hint) {
			hints = append(hints, p.Hint)
		}
	}
	return hints
}

// AgentName returns how messages name the agent of a Lost verdict.
func AgentName(v Verdict) string {
	what := "an agent"
	switch {
	case v.Rank != Unknown && v.Ranks > 1:
		what = fmt.Sprintf("the agent of ranks %d to %d", v.Rank, v.Rank+v.Ranks-1)
	case v.Rank != Unknown:
		what = fmt.Sprintf("the agent of rank %d", v.Rank)
	}
	return fmt.Sprintf("%s (pid %d on %s)", what, v.PID, v.Host)
}

// Stragglers are the workers that still run long after another one succeeded.
type Stragglers struct {
	First   int           `json:"first"`   // rank that succeeded first
	After   time.Duration `json:"after"`   // how long ago
	Running []Straggler   `json:"running"` // at most 8, in the order in which their agents joined
	More    int           `json:"more,omitempty"`
}

// Straggler is a rank that still runs, and its node.
type Straggler struct {
	Rank int    `json:"rank"` // rank of one
	Host string `json:"host"` // its node
}

func (s Straggler) String() string { return fmt.Sprintf("%d (%s)", s.Rank, s.Host) }

// String returns a line for people: "ranks 1 (node1), 3 (node2) are still running 10s
// after rank 0 succeeded".
func (s Stragglers) String() string {
	verb := "are"
	if len(s.Running)+s.More == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%s %s still running %v after rank %d succeeded", s.Names(), verb, s.After,
		s.First)
}

// Names returns the ranks that still run, for people: "rank 1 on node1", "ranks 1 (node1), 3
// (node2)".
func (s Stragglers) Names() string {
	if len(s.Running) == 1 && s.More == 0 {
		return fmt.Sprintf("rank %d on %s", s.Running[0].Rank, s.Running[0].Host)
	}
	return "ranks " + List(s.Running, s.More)
}

// MayBeConsequence tells whether a worker failed that had lost its connection to another one, of
// which nothing has been heard yet: its agent may be lost.
func (v *Verdict) MayBeConsequence() bool { return v.Kind == Failed && v.ReportDelay > 0 }
