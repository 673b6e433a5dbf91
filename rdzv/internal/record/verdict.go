package record

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	// `done`: all workers succeeded. `failed`: a worker failed first. `ended`: a signal to an
	// agent ended the job. `stopped`: `rdzv stop` ended it. `lost`: an agent, its launcher or its
	// runner was lost. `unready`: a check failed, no worker was started. `incomplete`: not all
	// agents joined in time. `straggling`: workers were still running too long after another one
	// succeeded. `stalled`: all workers ran and none made progress (`--stall-timeout`)
	Kind Kind `json:"kind"`
	// node of the agent that it is about
	Host string `json:"host,omitempty"`
	// process ID of the worker if the kind is `failed`, else of the agent
	PID int `json:"pid,omitempty"`
	// rank of the worker, or the first rank of the agent
	Rank      int `json:"rank"`
	LocalRank int `json:"local_rank"` // its local rank
	// `lost`: the ranks of the agent, such as `0-7`, `0,2`, or `0,2,...,14`
	Ranks string `json:"ranks,omitempty"`
	// `lost`: how long the agent was silent; left out if its connection was closed
	Silent Seconds `json:"silent_seconds,omitempty"`
	// `failed`: the worker's exit code, 128+n for signal n
	Code int `json:"exit_code,omitempty"`
	// the signal that ended the worker, or the job
	Signal Signal `json:"signal,omitempty"`
	// `failed`: from the worker's start to its end
	RanFor Seconds `json:"ran_seconds,omitempty"`
	// `failed`: one line on the worker's failure. `lost`: what was lost, if not the agent itself.
	// `unready`: why no world can be agreed. `stopped`: who has stopped the job. `ended`: why that
	// goes on only without the agent
	Text string `json:"message,omitempty"`
	// `unready` and `incomplete`: what kept agents from running their workers, the first 8
	Problems []NodeProblem `json:"problems,omitempty"`
	// how many other problems there are
	MoreProblems int `json:"more_problems,omitempty"`
	// `incomplete`: which agents joined
	Roster *Roster `json:"roster,omitempty"`
	// `straggling`: as in the event `stragglers`
	Stragglers *Stragglers `json:"stragglers,omitempty"`
	// `stalled`: as in the event `stalled`
	Stall *Stall `json:"stall,omitempty"`

	By string `json:"by,omitempty"` // ID of the agent that it is about
	// `failed`: from the worker's end to this verdict, which was held back because the failure may
	// be the consequence of another one
	ReportDelay Seconds `json:"report_delay_seconds,omitempty"`
	// `failed`: the kernel's out-of-memory killer has killed a process of the worker's cgroup
	OOM bool `json:"out_of_memory,omitempty"`
	// `failed`: `message` is only the last line of the worker's stdout and stderr
	LastLine bool `json:"last_line,omitempty"`
	// `ended`: the agent's workers have received the signal too; its sender probably sends it to
	// the other agents and their workers
	Shared bool `json:"shared,omitempty"`
	// `ended`: the program that embeds the agent wanted it, there was no signal
	Caller bool `json:"caller,omitempty"`
	// `ended`: the signal is for this agent alone, if another attempt can follow without it
	Withdrawn bool `json:"withdrawn,omitempty"`
	// `lost`: no other attempt follows, because the agent cannot run workers any more
	Final bool `json:"final,omitempty"`
}

// plain is a verdict without MarshalJSON.
type plain Verdict

// ToldVerdict is a verdict and its words, which are in its JSON form.
type ToldVerdict struct {
	Kind  Kind   `json:"kind"`
	Words string `json:"text"` // the verdict in words
	plain
}

// Told is the verdict with its words.
func (v Verdict) Told() ToldVerdict { return ToldVerdict{v.Kind, v.Error(), plain(v)} }

func (v Verdict) MarshalJSON() ([]byte, error) { return json.Marshal(v.Told()) }

// FailedVerdict returns the verdict about a failed worker of an agent.
func FailedVerdict(id, host string, w Worker) Verdict {
	w = w.shown()
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
// runner, is a member of the next attempt.
func (v *Verdict) LostAgent() bool { return v.Kind == Lost && v.Text == "" }

func (v *Verdict) Error() string {
	switch {
	case v.Kind == Done:
		return "all workers succeeded"
	case v.Kind == Failed:
		return fmt.Sprintf("rank %d on %s failed first: %s", v.Rank, v.Host, ExitStatus(v.Code, v.Signal))
	case v.Kind == Ended && v.PID == 0:
		return v.endedInStore()
	case v.Withdrawn && v.Caller:
		return v.Host + " leaves the job: stopped by its caller"
	case v.Withdrawn:
		return v.Host + " leaves the job: received SIGTERM"
	case v.Kind == Ended && v.Caller:
		return fmt.Sprintf("the agent on %s was stopped by its caller", v.Host)
	case v.Kind == Ended:
		return fmt.Sprintf("the agent on %s received %v", v.Host, v.Signal)
	case v.Kind == Stopped:
		return v.Text + " ended the job"
	case v.Kind == Moved:
		return "all agents look for the store again"
	case v.LostAgent() && v.PID == 0:
		return "lost an agent that was joining: it disconnected unexpectedly"
	case v.LostAgent():
		return "lost " + AgentName(*v) + ": " + HowLost(time.Duration(v.Silent))
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
	if v.Rank != Unknown {
		what = "the agent of " + RanksText(cmp.Or(v.Ranks, strconv.Itoa(v.Rank)))
	}
	return fmt.Sprintf("%s (pid %d on %s)", what, v.PID, v.Host)
}

// Stragglers says which workers are still running long after another one succeeded. The host of the
// store reports it, once, 10 s after the first success.
type Stragglers struct {
	// rank of the worker that succeeded first
	First int     `json:"first_rank"`
	After Seconds `json:"after_seconds"` // how long ago
	// workers that are still running, the first 8, in the order in which their agents joined
	Running []Straggler `json:"running"`
	More    int         `json:"more_running,omitempty"` // how many others are still running
}

// Type is the name of the event.
func (Stragglers) Type() string { return "stragglers" }

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
	return fmt.Sprintf("%s %s %s", s.Names(), verb, s.Still())
}

// Still is "still running 10s after rank 0 succeeded".
func (s Stragglers) Still() string {
	return fmt.Sprintf("still running %v after rank %d succeeded", s.After, s.First)
}

// Hint says how to find out more.
func (Stragglers) Hint() string {
	return "rdzv stacks, on any node of the job, shows where they are"
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
