package console

import (
	"strings"
	"testing"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/restart"
)

// Each attempt that fails has one line, also if the workers need some time to end.
func TestRestartLines(t *testing.T) {
	v := &rdzv.Verdict{
		Kind: rdzv.Failed, Rank: 2, LocalRank: 1, Host: "node1", PID: 71, Code: 1,
		Took: 3 * time.Second, Text: "ValueError: x",
	}
	const line = "rdzv: rank 2 failed first: exit 1 after 3.0s on node1 (local rank 1, pid 71): " +
		"ValueError: x"
	failed := agent.AttemptFailed{Verdict: v, Announce: true}
	first := agent.Restarting{Attempt: 1, MaxRestarts: 3, Announce: true}
	second := agent.Restarting{Attempt: 2, MaxRestarts: 3, Announce: true, Delay: time.Second}
	ended := agent.JobEnded{Verdict: v, Announce: true}
	own := agent.JobEnded{Verdict: v, Announce: true, Own: true}
	report := agent.FailureReported{Failure: agent.Failure{
		WorldSize: 1, PID: 71, Code: 1, Attempt: 3, NoRestart: restart.Exhausted,
	}}
	const last = "rdzv: not restarted: this was the last of 4 attempts (--max-restarts 3)\n"
	for name, test := range map[string]struct {
		events []agent.Event
		want   string
	}{
		"at once":      {[]agent.Event{failed, first}, line + "; restarting all workers (restart 1 of 3)\n"},
		"with a delay": {[]agent.Event{failed, second}, line + "; restarting all workers in 1s (restart 2 of 3)\n"},
		"slowly":       {[]agent.Event{failed, agent.Settling{}, first}, line + "\nrdzv: restarting all workers (restart 1 of 3)\n"},
		"another agent announces": {
			[]agent.Event{agent.AttemptFailed{Verdict: v}, agent.Restarting{Attempt: 1, MaxRestarts: 3}}, "",
		},
		"no restart":           {[]agent.Event{failed, ended}, line + "\n"},
		"no restart, slowly":   {[]agent.Event{failed, agent.Settling{}, ended}, line + "\n"},
		"own":                  {[]agent.Event{failed, own, report}, line + "\n" + last},
		"own, slowly":          {[]agent.Event{failed, agent.Settling{}, own, report}, line + "\n" + last},
		"a later attempt":      {[]agent.Event{failed, agent.Settling{}, first, ended}, line + "\nrdzv: restarting all workers (restart 1 of 3)\n" + line + "\n"},
		"own, a later attempt": {[]agent.Event{failed, agent.Settling{}, first, own, report}, line + "\nrdzv: restarting all workers (restart 1 of 3)\n" + line + "\n" + last},
	} {
		var out strings.Builder
		c := &Console{out: &out}
		for _, e := range test.events {
			c.Event(e)
		}
		if out.String() != test.want {
			t.Errorf("%s: wrote\n%swant\n%s", name, &out, test.want)
		}
	}
}
