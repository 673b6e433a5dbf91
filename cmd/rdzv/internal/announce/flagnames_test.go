package announce

import (
	"errors"
	"strings"
	"testing"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/meet"
)

// Texts of the library name fields of an agent's configuration, and the console the flags.
func TestFlagsInPlaceOfFields(t *testing.T) {
	const text = "give Config.Nodes N"
	problems := []rdzv.NodeProblem{{Problem: rdzv.Problem{Text: text + " or M", Hint: text}}}
	incomplete := &rdzv.Verdict{
		Kind: rdzv.Incomplete, Roster: &rdzv.Roster{Tasks: 2, Waiting: []string{text}},
	}
	for _, e := range []agent.Event{
		agent.FlagIgnored{Flag: "Config.Nodes 3", Reason: text},
		agent.Searching{Searching: meet.Searching{Hint: text}},
		agent.Searching{Searching: meet.Searching{Rejections: []meet.Rejected{meet.DifferentCommand{}}}},
		agent.DifferentToken{Hint: text},
		agent.DifferentCommand{},
		agent.DifferentNodes{},
		agent.Waiting{Roster: *incomplete.Roster},
		agent.EnvironmentNote{Text: text},
		agent.EnvironmentNote{Text: text, Verbose: true},
		agent.JobEnded{Announce: true, Hint: text},
		agent.JobEnded{Announce: true, StoreLost: text},
		agent.JobEnded{Announce: true, Verdict: incomplete},
		agent.JobEnded{Announce: true, Verdict: &rdzv.Verdict{Kind: rdzv.Unready, Text: text}},
		agent.JobEnded{Announce: true, Verdict: &rdzv.Verdict{Kind: rdzv.Unready, Problems: problems}},
		agent.JobEnded{
			Announce: true, Leads: true, Verdict: &rdzv.Verdict{Kind: rdzv.Unready, Problems: problems},
		},
		agent.FailureReported{Failure: agent.Failure{Hint: text}},
		agent.Diagnostic{Text: text, Err: errors.New(text)},
		agent.Diagnostic{Text: text, Severity: agent.Verbose},
	} {
		var out strings.Builder
		own := console.To(&out, false)
		own.Set(false, true)
		c := New(own)
		c.Event(e)
		if got := out.String(); strings.Contains(got, "Config.") || !strings.Contains(got, "--node") {
			t.Errorf("%s: wrote %q, want --nodes in place of Config.Nodes", e.Type(), got)
		}
	}
}

// What a worker writes stays, whatever it is.
func TestTextsOfWorkersStay(t *testing.T) {
	const text = "no Config.Nodes"
	failed := &rdzv.Verdict{Kind: rdzv.Failed, PID: 71, Code: 3, Text: text}
	for _, e := range []agent.Event{
		agent.JobEnded{Announce: true, Verdict: failed},
		agent.FailureReported{Failure: agent.Failure{
			PID: 71, WorldSize: 2, Message: text, Program: []string{"echo", text}, Stderr: []string{text},
		}},
	} {
		var out strings.Builder
		c := New(console.To(&out, false))
		c.Event(e)
		if got := out.String(); strings.Contains(got, "--nodes") || !strings.Contains(got, text) {
			t.Errorf("%s: wrote %q, want %q as it is", e.Type(), got, text)
		}
	}
}
