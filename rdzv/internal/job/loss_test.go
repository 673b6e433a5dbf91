package job

import (
	"testing"
	"time"

	"rdzv/rdzv/internal/record"
)

// Another attempt follows only if others may take the place of those that are lost, and all others
// have settled.
func TestWhetherAnAttemptFollows(t *testing.T) {
	for name, c := range map[string]struct {
		config    Config
		lost      string
		spare     bool // agent-2 is one
		unsettled bool // agent-0 has not
		want      bool
	}{
		"nobody is lost":   {Config{}, "", false, false, true},
		"one is lost":      {Config{}, "agent-1", false, false, false},
		"there is a spare": {Config{}, "agent-1", true, false, true},
		"the spare, too":   {Config{}, "agent-1 agent-2", true, false, false},
		"replaceable":      {Config{Replaceable: true}, "agent-1", false, false, true},
		"not settled":      {Config{Replaceable: true}, "agent-1", false, true, false},
		"enough are left":  {Config{Tasks: 3, MinTasks: 2}, "agent-1", false, false, true},
		"too few are left": {Config{Tasks: 3, MinTasks: 3}, "agent-1", false, false, false},
	} {
		m := in(c.lost, joinedAgent(0), joinedAgent(1), joinedAgent(2))
		for i, one := range m.all {
			one.seat.Spare = c.spare && i == 2
			one.settled = i > 0 || !c.unsettled
		}
		l := losses{config: &settings{Config: c.config}, agents: &agents{}, members: m,
			phase: &phase{complete: true, world: &record.World{}}}
		if got := l.mayFollow(); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// Two attempts that fail with the same message have no third, so only what the worker itself has
// written about its failure is one.
func TestMessageOfAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		verdict record.Verdict
		lost    string
		want    string
	}{
		"exception":        {record.Verdict{Text: "no data"}, "", "no data"},
		"signal":           {record.Verdict{Text: "no data", Signal: 11}, "", ""},
		"last line":        {record.Verdict{Text: "epoch 0", LastLine: true}, "", ""},
		"consequence":      {record.Verdict{Text: "closed", ReportDelay: 1}, "", ""},
		"an agent is lost": {record.Verdict{Text: "no data"}, "agent-1", ""},
	} {
		c.verdict.Kind = record.Failed
		a := attempt{members: *in(c.lost, joinedAgent(0), joinedAgent(1))}
		a.end.verdict, a.end.verdictAt = &c.verdict, base.Add(time.Minute)
		if f := a.failure(); f.Message != c.want {
			t.Errorf("%s: message %q, want %q", name, f.Message, c.want)
		}
	}
}

// In a later attempt the loss of an agent ends the job at once if no other one may take its place,
// and is waited for otherwise.
func TestLossBetweenAttempts(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		ends   bool
	}{
		"no other agent": {Config{Tasks: 2}, true},
		"replaceable":    {Config{Tasks: 2, Replaceable: true}, false},
	} {
		s := newState(base, c.config, Store{})
		s.attempt.phase.later = true
		for _, m := range in("", joinedAgent(0), joinedAgent(1)).all {
			s.attempt.members.add(m)
		}
		s.lose(&turn{now: base}, "agent-1", record.Loss{})
		if ends := len(s.attempt.end.wanted) > 0; ends != c.ends {
			t.Errorf("%s: a verdict: %t, want %t", name, ends, c.ends)
		}
	}
}
