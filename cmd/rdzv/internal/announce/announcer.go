// Package announce decides which events of an agent the user is told, when, and with which of -q
// and -v. Their words are those of package agent.
package announce

import (
	"fmt"
	"time"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/tables"
	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/stacks"
)

// Announcer writes what the events of one agent mean.
type Announcer struct {
	console  *console.Console
	end      ending
	launcher envmap.Launcher
	command  command
}

// New returns the announcer of an agent whose events have yet to come.
func New(c *console.Console) *Announcer { return &Announcer{console: c, end: ending{console: c}} }

// Describe says which version of rdzv reports, and has its clock, for reports; without it they have
// neither.
func (a *Announcer) Describe(version string, now func() time.Time) {
	a.end.version, a.end.now = version, now
}

// SetCommand sets the command of rdzv that this process is, its flags and the program, which start
// other nodes too.
func (a *Announcer) SetCommand(name string, flags, program []string) {
	a.command = command{name, flags, program}
}

// Event writes what an event means for the user, if anything.
func (a *Announcer) Event(e agent.Event) {
	c := a.console
	switch e := e.(type) {
	case agent.WorkerStarted:
		c.WorkersBegin()
	case agent.WorkerExited:
		if e.Stopped { // another agent may be about to write why
			c.CompleteLine()
		}
	case agent.FlagIgnored, agent.DifferentCommand, agent.DifferentStore, agent.RanksMissing,
		agent.NoMulticast, agent.NodesDiffer:
		c.Info("%v", e)
	case agent.DifferentToken:
		a.told(e, e.Hint)
	case agent.DifferentVersion:
		a.told(e, e.Hint())
	case agent.Stragglers:
		a.told(e, e.Hint())
	case agent.InitProgress: // a line of its own on a terminal too: the workers write to it as well
		a.told(e, e.Hint())
	case agent.Unprotected, agent.LogLost, agent.OutputLost:
		c.Warn("%v", e)
	case agent.TokenCreated:
		if c.Terminal() {
			c.Info("%v", e)
		}
	case agent.Placed:
		a.launcher = e.Launcher
		c.Verbose("%v", e)
	case agent.Searching:
		c.Status(e.String(), e.Waited)
		if !e.Pending() || e.Waited >= soon { // a busy host needs a second or two
			c.Suggest(e.Hint)
		}
	case agent.NoPeerYet:
		a.alone(e)
	case agent.StoreFound:
		c.EndStatus()
		c.Verbose("%v", e)
	case agent.Waiting:
		c.Status(e.String(), time.Duration(e.Waited))
	case agent.WorldAgreed:
		c.EndStatus()
		a.end.world = e
		a.worldAgreed(e)
	case agent.EnvironmentNote:
		if e.Verbose {
			c.Verbose("%v", e)
		} else {
			c.Info("%v", e)
		}
	case agent.Diagnostic:
		if e.Severity == agent.Verbose {
			c.Verbose("%v", e)
		} else {
			c.Warn("%v", e)
			c.Suggest(agent.Hint(e.Err))
		}
	case agent.Stalled:
		a.stalled(e)
	case agent.JobEnded:
		c.EndStatus()
		a.end.jobEnded(e, a.howToStart(e.Verdict))
	case agent.AttemptFailed:
		a.end.attemptFailed(e)
	case agent.Restarting:
		a.end.restarting(e)
	case agent.Settling:
		a.end.settling(e)
	case agent.DumpingStacks:
		a.end.dumpingStacks(e)
	case agent.FailureReported:
		a.end.failureReported(e.Failure)
	case agent.Finished:
		a.end.finished()
	}
}

// told writes an event that -q omits, and what to do about it.
func (a *Announcer) told(e fmt.Stringer, hint string) {
	a.console.Info("%v", e)
	a.console.Suggest(hint)
}

// soon is how long a store that does not answer is no reason for advice.
const soon = 3 * time.Second

// alone tells how the other nodes can find this one.
func (a *Announcer) alone(e agent.NoPeerYet) {
	if line := e.String(); line != "" {
		a.console.Info("%s", line)
	}
	for _, hint := range e.Hints() {
		a.console.Suggest(hint)
	}
	if e.JoinLine == "" {
		return
	}
	line, ranked := a.command.elsewhere()
	text := "on each node that cannot join, in the same directory, start this"
	if e.Secret {
		text += "; it contains the key of the job"
	}
	if ranked {
		text += "; N is its number"
	}
	a.console.Suggest(text + ":")
	a.console.Command(e.JoinLine + " " + line)
}

// worldAgreed writes on rank 0's node where the ranks are, on a spare's what it waits for, and who
// has taken over the ranks of lost agents.
func (a *Announcer) worldAgreed(e agent.WorldAgreed) {
	c := a.console
	waits := e.Seat.Spare && e.MaxTasks > 0 // until its ranks are known, nobody has taken over any
	if !e.Seat.Spare {
		c.Verbose("%v", e)
	}
	if !waits {
		for _, line := range e.TakenOver() {
			if e.Announce {
				c.Info("%s", line)
			} else {
				c.Verbose("%s", line)
			}
		}
	}
	line := e.Start()
	if e.Seat.Spare {
		line = e.String()
	}
	if line != "" {
		c.Info("%s", line)
	}
}

// stalled writes where the ranks are that make no progress. The line about the end follows, if the
// attempt ends.
func (a *Announcer) stalled(e agent.Stalled) {
	c := a.console
	c.EndStatus()
	if !e.Ends {
		c.Error("%v", e)
	}
	c.Table("where the ranks are:", tables.Stacks([]stacks.Report{e.Stacks}, console.Destination{}))
	if e.File != "" {
		c.Info("this is in %s", e.File)
	}
}

// StallText returns the text of the file that an agent writes about a stall, see
// agent.Config.DescribeStall. The file of --report has it, too.
func StallText(e agent.Stalled) string {
	return fmt.Sprintf("%v\nattempt %d, --stall-timeout %v\n\n%s", e, e.Attempt, e.Timeout,
		tables.Stacks([]stacks.Report{e.Stacks}, console.Destination{}))
}

// howToStart says how missing agents of a job without a launcher are started, "" if none are
// missing.
func (a *Announcer) howToStart(v *rdzv.Verdict) string {
	if v == nil || v.Kind != rdzv.Incomplete || a.launcher != envmap.None || len(v.Problems) > 0 {
		return ""
	}
	return "start the same command on every node, with the same --nodes and --job, if given"
}
