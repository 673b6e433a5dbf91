package announce

import (
	"cmp"
	"fmt"
	"strings"
	"syscall"
	"time"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/internal/plural"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// ending holds back the line about the end of the job or of an attempt until it is known what
// follows, so that a report can replace it, and a restart can be part of the same line.
type ending struct {
	console     *console.Console
	held        string // why it ended, if that has not been written yet
	unsure      string // what to write instead before that is certain; "" if it is
	attempt     bool   // an attempt has failed, and what follows is not known yet
	interrupted bool   // Ctrl-C ended the job
	stall       string // the line about the stall that ended it; "" if none did
	dumped      bool   // workers have printed their stacks since then

	world   rdzv.World       // of the last attempt
	version string           // of rdzv
	now     func() time.Time // nil without Describe
}

// jobEnded writes in one line why the job ended, as soon as that is known, unless another agent of
// this node does. The agent whose worker failed first writes a report when all agents have settled,
// and the line only if that takes some time. line is why, and howToStart how missing agents are
// started.
func (n *ending) jobEnded(e agent.JobEnded, line, howToStart string) {
	c, v := n.console, e.Verdict
	written := n.attempt && n.held == "" && !(v != nil && v.Withdrawn) // by attemptFailed
	n.attempt, n.held, n.unsure = false, "", ""
	n.interrupted = v != nil && v.Kind == rdzv.Ended && v.Signal == rdzv.Signal(syscall.SIGINT)
	switch {
	case v != nil && v.Kind == rdzv.Done, written:
	case !e.Announce:
		c.Verbose("%s", line)
	case v == nil:
		c.Error("%s", line)
	case v.Kind == rdzv.Failed && e.Own:
		n.held = line
	case v.Kind == rdzv.Unready && !e.Leads: // the agent that leads prints all problems
		first, _, _ := strings.Cut(line, "\n")
		c.Error("%s", first)
	default:
		if v.Kind == rdzv.Stalled {
			n.stall = line
		}
		c.Error("%s", line)
		c.Hint(strings.Join(v.Hints(), "\n"))
		c.Hint(howToStart)
		if v.Kind == rdzv.Stalled && e.NoRestart != "" {
			c.Info("not restarted: %s", noRestart(agent.Failure{NoRestart: e.NoRestart, Attempt: e.Attempt,
				Code: v.Code}))
		}
	}
	if e.Announce {
		c.Hint(e.Hint)
	}
}

// attemptFailed keeps the line that says why an attempt failed until it is known what follows, or
// until that takes some time (settling.go). line is why the job
// would have ended.
func (n *ending) attemptFailed(e agent.AttemptFailed, line string) {
	unsure := ""
	switch {
	case e.Verdict.Withdrawn:
		line = e.Verdict.Error()
	case e.MayBeConsequence:
		unsure = strings.Replace(line, "failed first:", "failed:", 1) +
			"; waiting to see whether an agent was lost"
	}
	if !e.Announce {
		n.console.Verbose("%s", cmp.Or(unsure, line))
		return
	}
	n.attempt, n.held, n.unsure = true, line, unsure
}

// restarting writes the one line about an attempt that failed and is followed by another one.
func (n *ending) restarting(e agent.Restarting, upToTimeout string) {
	line := fmt.Sprintf("restarting all workers (restart %d of %d)", e.Attempt, e.MaxRestarts)
	if e.Delay > 0 {
		line = fmt.Sprintf("restarting all workers in %v (restart %d of %d)", e.Delay.Rounded(),
			e.Attempt, e.MaxRestarts)
	}
	if len(e.Vacant) > 0 {
		line = fmt.Sprintf("waiting%s for an agent in place of %s (restart %d of %d)", upToTimeout,
			placesOf(e.Vacant), e.Attempt, e.MaxRestarts)
	}
	if e.Missing > 0 {
		line = fmt.Sprintf("waiting%s for %s (restart %d of %d)", upToTimeout,
			plural.Of(e.Missing, "more node"), e.Attempt, e.MaxRestarts)
	}
	if e.Withdrawn {
		line = "the job goes on without this node"
	}
	if n.held != "" {
		line = n.held + "; " + line
	}
	n.attempt, n.held, n.unsure = false, "", ""
	if !e.Announce {
		n.console.Verbose("%s", line)
		return
	}
	n.console.Info("%s", line)
	if len(e.Vacant) > 0 {
		n.console.Suggest("start it again with the same command, there or on another node")
	}
	if e.Missing > 0 {
		n.console.Suggest("start the same command on other nodes")
	}
}

// failureReported writes the report on the worker that failed first. If it was the only worker, its
// stderr directly above and one line are enough.
func (n *ending) failureReported(f agent.Failure) {
	c := n.console
	if f.PID == 0 || f.WorldSize == 1 {
		n.writeHeld()
	} else {
		n.held = ""
		c.Error("%s", reportText(f, n.when(), shows(c, f.Stderr)))
	}
	c.Hint(f.Hint)
	if f.NoRestart != "" {
		c.Info("not restarted: %s", noRestart(f))
	}
}

// finished repeats the line about a stall below the stacks that workers have printed meanwhile.
func (n *ending) finished() {
	if n.dumped && n.stall != "" {
		n.console.Error("%s", n.stall)
	}
}

// maxNodes is how many nodes the report names.
const maxNodes = 4

// when is a line of the report on when and where the job has failed, "" without a clock.
func (n *ending) when() string {
	if n.now == nil {
		return ""
	}
	shown := len(n.world.Layout)
	if shown > maxNodes {
		shown = maxNodes - 2
	}
	job := plural.Of(n.world.Nodes, "node") + nodeList(n.world.Layout, shown)
	return fmt.Sprintf("%s, %s, rdzv %s", n.now().UTC().Format(time.RFC3339), job, n.version)
}

// writeHeld writes the line of jobEnded if the report comes much later, or not at all.
func (n *ending) writeHeld() {
	if n.held != "" {
		n.console.Error("%s", cmp.Or(n.unsure, n.held))
	}
	n.held, n.unsure = "", ""
}
