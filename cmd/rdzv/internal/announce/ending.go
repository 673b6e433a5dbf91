package announce

import (
	"cmp"
	"fmt"
	"strings"
	"syscall"
	"time"

	"rdzv/cmd/rdzv/internal/console"
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

	world   agent.WorldAgreed // of the last attempt
	version string            // of rdzv
	now     func() time.Time  // nil without Describe
	endedAt time.Time
}

// jobEnded writes in one line why the job ended, as soon as that is known, unless another agent of
// this node does. The agent whose worker failed first writes a report when all agents have settled,
// and the line only if that takes some time. howToStart is how missing agents are started.
func (n *ending) jobEnded(e agent.JobEnded, howToStart string) {
	c, v, line := n.console, e.Verdict, e.String()
	written := n.attempt && n.held == "" && !(v != nil && v.Withdrawn) // by attemptFailed
	n.attempt, n.held, n.unsure = false, "", ""
	if n.now != nil {
		n.endedAt = n.now()
	}
	n.interrupted = v != nil && v.Kind == rdzv.Ended && v.Signal == rdzv.Signal(syscall.SIGINT)
	switch {
	case v != nil && v.Kind == rdzv.Done, written:
	case !e.Announce:
		c.Verbose("%s", line)
	case v == nil:
		c.Error("%s", line)
	case v.Kind == rdzv.Failed && e.ReportFollows:
		n.held = line
	case v.Kind == rdzv.Unready && !e.Leads: // the agent that leads prints all problems
		c.Error("%s", e.Brief())
	default:
		c.Error("%s", line)
		c.Hint(strings.Join(v.Hints(), "\n"))
		c.Hint(howToStart)
		if v.Kind == rdzv.Stalled {
			n.stall = line
			n.note(e.NotRestarted())
		}
	}
	if e.Announce {
		c.Hint(e.Hint)
	}
}

// note writes a line that -q omits, if there is one.
func (n *ending) note(line string) {
	if line != "" {
		n.console.Info("%s", line)
	}
}

// attemptFailed keeps the line that says why an attempt failed until it is known what follows, or
// until that takes some time.
func (n *ending) attemptFailed(e agent.AttemptFailed) {
	line, unsure := e.String(), ""
	if e.MayBeConsequence && !e.Verdict.Withdrawn {
		unsure, e.MayBeConsequence = line, false
		line = e.String() // unless another event says that it is one
	}
	if !e.Announce {
		n.console.Verbose("%s", cmp.Or(unsure, line))
		return
	}
	n.attempt, n.held, n.unsure = true, line, unsure
}

// restarting writes the one line about an attempt that failed and is followed by another one.
func (n *ending) restarting(e agent.Restarting) {
	line := e.String()
	if n.held != "" {
		line = n.held + "; " + line
	}
	n.attempt, n.held, n.unsure = false, "", ""
	if !e.Announce {
		n.console.Verbose("%s", line)
		return
	}
	n.console.Info("%s", line)
	for _, hint := range e.Hints() {
		n.console.Suggest(hint)
	}
}

// settling writes what this agent waits for after the job's end, if that takes some time.
func (n *ending) settling(e agent.Settling) {
	n.writeHeld()
	line := e.String()
	switch {
	case line == "":
		return
	case n.console.Terminal() && n.interrupted:
		line += "; press Ctrl-C again to kill them"
	case n.console.Terminal():
		line += "; press Ctrl-C to kill them"
	}
	n.console.Info("%s", line)
}

// dumpingStacks writes whose stacks follow, where they do: a launcher may read the streams of its
// tasks in any order.
func (n *ending) dumpingStacks(e agent.DumpingStacks) {
	n.writeHeld()
	n.dumped = true
	n.console.At(e.Stderr).Warn("%v", e)
}

// failureReported writes the report on the worker that failed first. If it was the only worker, its
// stderr directly above and one line are enough.
func (n *ending) failureReported(f agent.Failure) {
	c := n.console
	if f.PID == 0 || f.WorldSize == 1 {
		n.writeHeld()
	} else {
		n.held = ""
		c.Error("%s", f.Report(n.when(), shows(c, f.Stderr)))
	}
	c.Hint(f.Hint)
	n.note(f.NotRestarted())
}

// when is a line of the report on when and where the job has failed, "" without a clock.
func (n *ending) when() string {
	if n.now == nil {
		return ""
	}
	at := n.endedAt.UTC().Format(time.RFC3339)
	return fmt.Sprintf("%s, %s, rdzv %s", at, n.world.Where(), n.version)
}

// maxBetween is how many lines there may be between what a worker has printed and the report, so
// that the report does not repeat it.
const maxBetween = 5

// shows tells whether these lines are the last ones on stderr, except for a few. Where a traceback
// follows a progress bar, that may be the bar of another rank.
func shows(c *console.Console, lines []string) bool {
	const start = "Traceback (most recent call last):"
	if len(lines) > 0 && strings.Contains(lines[0], start) {
		lines = append([]string{start}, lines[1:]...)
	}
	return c.Shows(lines, maxBetween)
}

// finished repeats the line about a stall below the stacks that workers have printed meanwhile.
func (n *ending) finished() {
	if n.dumped && n.stall != "" {
		n.console.Error("%s", n.stall)
	}
}

// writeHeld writes the line of jobEnded if the report comes much later, or not at all.
func (n *ending) writeHeld() {
	if n.held != "" {
		n.console.Error("%s", cmp.Or(n.unsure, n.held))
	}
	n.held, n.unsure = "", ""
}
