// Package announce writes what happens to a job for the user: what each event of the agent means,
// and why the job ended. Events, verdicts and problems of package agent carry kinds and fields;
// this package and the Error methods of error types turn them into sentences. It makes no
// decisions.
package announce

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/tables"
	"rdzv/envmap"
	"rdzv/internal/plural"
	"rdzv/internal/shell"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// Announcer writes what the events of one agent mean.
type Announcer struct {
	console  *console.Console
	words    words
	end      ending
	launcher envmap.Launcher
	command  command
}

// Describe says which version of rdzv reports, and has its clock, for reports; without it they have
// neither.
func (a *Announcer) Describe(version string, now func() time.Time) {
	a.end.version, a.end.now = version, now
}

// New returns the announcer of an agent whose events have yet to come.
func New(c *console.Console) *Announcer { return &Announcer{console: c, end: ending{console: c}} }

// SetJoinTimeout sets the value of --join-timeout, for messages.
func (a *Announcer) SetJoinTimeout(d time.Duration) { a.words.joinTimeout = d }

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
	case agent.FlagIgnored:
		c.Info("ignoring %s: %s", e.Flag, e.Reason)
	case agent.Unprotected:
		c.Warn("--insecure: connections are neither authenticated nor encrypted: " +
			"anyone who can reach the nodes can join this job")
	case agent.TokenCreated:
		if c.Terminal() {
			c.Info("created the token %s; nodes that do not share this file cannot join without a line "+
				"that follows", e.File)
		}
	case agent.Placed:
		a.placed(e)
	case agent.Searching:
		searching(c, e)
	case agent.NoPeerYet:
		noPeerYet(c, e, a.command)
	case agent.DifferentToken:
		c.Info("%v", e)
		c.Suggest(e.Hint)
	case agent.DifferentVersion:
		c.Info("%v", e)
		c.Suggest(e.Hint())
	case agent.DifferentCommand:
		c.Info("%s", e.String())
	case agent.DifferentStore:
		c.Info("%s", e.String())
	case agent.RanksMissing:
		c.Info("waiting for all %d ranks to start (Hydra does not report which are missing)",
			e.Ranks)
	case agent.NoMulticast:
		c.Info("cannot search for the other nodes by multicast: %v", e.Err)
	case agent.StoreFound:
		c.EndStatus()
		storeFound(c, e)
	case agent.Waiting:
		c.Status("%s (%v)", e.Roster.String(), e.Waited.Rounded())
	case agent.WorldAgreed:
		c.EndStatus()
		a.end.world = e.World
		worldAgreed(c, e)
	case agent.NodesDiffer:
		c.Info("warning: %v", e.Comparison)
	case agent.EnvironmentNote:
		if e.Verbose {
			c.Verbose("%s", e.Text)
		} else {
			c.Info("%s", e.Text)
		}
	case agent.InitProgress:
		initProgress(c, e)
	case agent.Stragglers:
		c.Info("%v", e)
		c.Suggest("rdzv stacks, on any node of the job, shows where they are")
	case agent.Stalled:
		stalled(c, e)
	case agent.JobEnded:
		c.EndStatus()
		a.end.jobEnded(e, a.words.endLine(e), a.howToStart(e.Verdict))
	case agent.AttemptFailed:
		a.end.attemptFailed(e, a.words.endLine(agent.JobEnded{Verdict: e.Verdict}))
	case agent.Restarting:
		a.end.restarting(e, a.words.upToTimeout())
	case agent.Settling:
		a.end.settling(e)
	case agent.DumpingStacks:
		a.end.dumpingStacks(e)
	case agent.LogLost:
		logLost(c, e)
	case agent.OutputLost:
		outputLost(c, e)
	case agent.FailureReported:
		a.end.failureReported(e.Failure)
	case agent.Finished:
		a.end.finished()
	case agent.Diagnostic:
		if e.Severity == agent.Verbose {
			c.Verbose("%s", e.Text)
		} else {
			c.Warn("%s", e.Text)
			c.Suggest(agent.Hint(e.Err))
		}
	}
}

// howToStart says how missing agents of a job without a launcher are started, "" if none are
// missing.
func (a *Announcer) howToStart(v *rdzv.Verdict) string {
	if v == nil || v.Kind != rdzv.Incomplete || a.launcher != envmap.None || len(v.Problems) > 0 {
		return ""
	}
	return "start the same command on every node, with the same --nodes and --job, if given"
}

func (a *Announcer) placed(e agent.Placed) {
	c := a.console
	a.launcher = e.Launcher
	if e.Launcher == envmap.None {
		c.Verbose("no launcher: job %s, %s", e.Job, plural.Of(e.Agents, "agent"))
		return
	}
	also := ""
	if e.Others != "" {
		also = ", with the workers of the other tasks of this node: " + e.Others
	}
	c.Verbose("started by %s: job %s, rank %d of %d%s", e.Launcher, e.Job, e.Rank, e.Size, also)
}

func searching(c *console.Console, e agent.Searching) {
	c.Status("%s (%v)", e.String(), e.Waited.Round(time.Second))
	if !e.Pending() || e.Waited >= soon { // a busy host needs a second or two
		c.Suggest(e.Hint)
	}
}

// soon is how long a store that does not answer is no reason for advice.
const soon = 3 * time.Second

// noPeerYet tells how the other nodes can find this one.
// command is that of this node.
func noPeerYet(c *console.Console, e agent.NoPeerYet, command command) {
	noBeacon := ""
	if e.NoBeacon {
		noBeacon = ", and no multicast beacon was received"
	}
	if !e.Explained {
		c.Info("no other agent has connected after %v%s", e.Waited.Rounded(), noBeacon)
	}
	c.Suggest(e.Hint)
	switch {
	case e.Loopback != "":
		c.Suggest(fmt.Sprintf("%s is each node's own: for agents on other nodes start every node with "+
			"--store %s", e.Loopback, e.Store))
	case e.Store.IsValid() && e.JoinLine == "":
		c.Suggest("if the other nodes cannot find this one, start every node with --store " +
			e.Store.String())
	}
	if e.JoinLine != "" {
		line, ranked := command.elsewhere()
		text := "on each node that cannot join, in the same directory, start this"
		if e.Secret {
			text += "; it contains the key of the job"
		}
		if ranked {
			text += "; N is its number"
		}
		c.Suggest(text + ":")
		c.Command(e.JoinLine + " " + line)
	}
}

// A command is how this process was started.
type command struct {
	name           string // exec or check
	flags, program []string
}

// elsewhere is the command for another node, and whether it needs a --node-rank of its own there.
func (c command) elsewhere() (line string, ranked bool) {
	flags := slices.Clone(c.flags)
	for i, word := range flags {
		switch name, _, joined := strings.Cut(strings.ReplaceAll(word, "_", "-"), "="); {
		case name != "--node-rank":
		case joined:
			flags[i], ranked = "--node-rank=N", true
		case i+1 < len(flags):
			flags[i+1], ranked = "N", true
		}
	}
	return shell.Line(slices.Concat([]string{"rdzv", c.name}, flags, c.program)...), ranked
}

func storeFound(c *console.Console, e agent.StoreFound) {
	switch {
	case e.Hosting && e.Addr == "":
		c.Verbose("hosting the store, for this agent alone")
	case e.Hosting:
		c.Verbose("hosting the store at %s", e.Addr)
	default:
		c.Verbose("connected to the store at %s from %s", e.Addr, e.Own)
	}
}

func worldAgreed(c *console.Console, e agent.WorldAgreed) {
	if e.Seat.Spare {
		spare(c, e)
		return
	}
	w := e.World
	ranks := plural.Noun(e.Seat.Workers(), "rank") + " " + e.Seat.Ranks()
	c.Verbose("all agents joined: this agent runs %s of %d on node %d of %d; MASTER_ADDR=%s "+
		"MASTER_PORT=%d",
		ranks, w.Size, e.Seat.Node, w.Nodes, w.MasterAddr, w.MasterPort)
	replaced(c, e)
	switch {
	case !e.Seat.Has(0):
	case w.Attempt > 0 && w.MaxTasks > 0: // with other ranks than before
		c.Info("%s (restart %d of %d)", startLine(w), w.Attempt, w.MaxRestarts)
	case w.Attempt == 0 && (w.Nodes > 1 || len(w.Spares) > 0):
		c.Info("%s", startLine(w))
	}
}

// initProgress writes which ranks are missing, in a line of its own on a terminal too: the workers
// write to it as well.
func initProgress(c *console.Console, e agent.InitProgress) {
	c.Info("%v", e.InitProgress)
	if e.Reached == e.Ranks {
		return
	}
	where := fmt.Sprintf("rdzv stacks, on any node of the job, shows where rank %d is", *e.First)
	if e.Python != 0 {
		where += fmt.Sprintf(" (pid %d on %s)", e.Python, e.Host)
	}
	c.Suggest(where)
}

// startLine tells which ranks run on which nodes: on all of them if they fit into the line,
// otherwise on the first ones and the last one.
func startLine(w rdzv.World) (line string) {
	for _, first := range []int{w.Nodes, 2, 1, 0} {
		if first > len(w.Layout) || first == w.Nodes-1 {
			continue // not all are known, or the list would leave out none
		}
		line = plural.Of(w.Size, "rank") + " on " + plural.Of(w.Nodes, "node") +
			nodeList(w.Layout, first) + spareList(w) + "; rank 0 at " + w.MasterAddr
		if len("rdzv: "+line) <= lineWidth {
			break
		}
	}
	return line
}

// nodeList is ": node1 0-3, node2 4-7, ..., node9 32-35" of the first nodes and the last one, or ""
// of none.
func nodeList(nodes []rdzv.NodeRanks, first int) string {
	if first == 0 {
		return ""
	}
	var texts []string
	for i, node := range nodes {
		switch last := i == len(nodes)-1; {
		case i < first:
			texts = append(texts, node.Host+" "+node.Ranks)
		case last:
			texts = append(texts, "...", node.Host+" "+node.Ranks)
		}
	}
	return ": " + strings.Join(texts, ", ")
}

// spareList is " and 1 spare (node5)", or "" without spares.
func spareList(w rdzv.World) string {
	n := len(w.Spares) + w.MoreSpares
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %s (%s)", plural.Of(n, "spare"), tables.ShortList(w.Spares))
}

// lineWidth is the maximum length of a line that can be shortened.
const lineWidth = 100

// EndLine is why the job ended, in one line except if several problems prevented it from starting.
func (a *Announcer) EndLine(e agent.JobEnded) string { return a.words.endLine(e) }

// JoinTimedOut writes that this agent did not find the others in time, and returns that as a
// message.
func (a *Announcer) JoinTimedOut(e *agent.JoinTimeoutError) string {
	message := a.words.timedOut(e.Reason())
	a.console.Error("%s", message)
	a.console.HintOnce(agent.Hint(e))
	return message
}

// EndedBySignal writes that a signal came before the job started, and returns that as a message. An
// agent that does not announce it is silent.
func (a *Announcer) EndedBySignal(e *agent.SignalError, announce bool) string {
	message := "received " + rdzv.Signal(e.Signal).String() + " before the job started"
	if e.By != "" {
		message = e.Error()
	}
	if e.Withdrawn {
		message = "received " + rdzv.Signal(e.Signal).String() + ": the job goes on without this agent"
	}
	if announce {
		a.console.Info("%s", message)
	}
	return message
}
