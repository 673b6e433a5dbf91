package console

import (
	"fmt"
	"strings"
	"time"

	"rdzv/cmd/rdzv/internal/flagname"
	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// Event writes what an event means for the user, if anything.
func (c *Console) Event(e agent.Event) {
	switch e := e.(type) {
	case agent.WorkerStarted:
		c.workersBegin()
	case agent.WorkerExited:
		if e.Stopped { // another agent may be about to write why
			c.endLine()
		}
	case agent.FlagIgnored:
		c.Info("ignoring %s: %s", flagname.In(e.Flag), flagname.In(e.Reason))
	case agent.Unprotected:
		c.Warn("--insecure: connections are neither authenticated nor encrypted: " +
			"anyone who can reach the nodes can join this job")
	case agent.TokenCreated:
		if c.Terminal() {
			c.Info("created the token %s: nodes that do not share this file need a copy of it", e.File)
		}
	case agent.Placed:
		c.placed(e)
	case agent.Searching:
		c.searching(e)
	case agent.Alone:
		c.alone(e)
	case agent.DifferentToken:
		c.Info("%v", e.DifferentToken)
		c.suggest(e.Hint)
	case agent.DifferentVersion:
		c.Info("%v", e.DifferentVersion)
		c.suggest(e.Hint())
	case agent.DifferentCommand:
		c.Info("%s", flagname.In(e.DifferentCommand.String()))
	case agent.DifferentStore:
		c.Info("%s", flagname.In(e.DifferentStore.String()))
	case agent.DifferentNodes:
		c.Info("%s", flagname.In(e.DifferentNodes.String()))
	case agent.RanksMissing:
		c.Info("waiting for all %d ranks to start (Hydra does not report which are missing)",
			e.Ranks)
	case agent.NoMulticast:
		c.Info("cannot search for the other nodes by multicast: %v", e.Err)
	case agent.StoreFound:
		c.EndStatus()
		c.storeFound(e)
	case agent.Waiting:
		c.Status("%s (%v)", flagname.In(e.Roster.String()), e.Waited.Rounded())
	case agent.WorldAgreed:
		c.EndStatus()
		c.worldAgreed(e)
	case agent.NodesDiffer:
		c.Info("warning: %v", e.Comparison)
	case agent.EnvironmentNote:
		if text := flagname.In(e.Text); e.Verbose {
			c.Verbose("%s", text)
		} else {
			c.Info("%s", text)
		}
	case agent.InitProgress:
		c.initProgress(e)
	case agent.Stragglers:
		c.Info("%v", e.Stragglers)
		c.suggest("rdzv stacks, on any node of the job, shows where they are")
	case agent.Stalled:
		c.stalled(e)
	case agent.JobEnded:
		c.EndStatus()
		c.jobEnded(e)
	case agent.AttemptFailed:
		c.attemptFailed(e)
	case agent.Restarting:
		c.restarting(e)
	case agent.Settling:
		c.settling(e)
	case agent.DumpingStacks:
		c.dumpingStacks(e)
	case agent.LogLost:
		c.logLost(e)
	case agent.OutputLost:
		c.outputLost(e)
	case agent.FailureReported:
		c.failureReported(e.Failure)
	case agent.Diagnostic:
		if text := flagname.In(e.Text); e.Severity == agent.Verbose {
			c.Verbose("%s", text)
		} else {
			c.Warn("%s", text)
			c.suggest(agent.Hint(e.Err))
		}
	}
}

func (c *Console) placed(e agent.Placed) {
	c.launcher = e.Launcher
	if e.Launcher == envmap.None {
		c.Verbose("no launcher: job %s, %s", e.Job, Plural(e.Agents, "agent"))
		return
	}
	c.Verbose("started by %s: job %s, rank %d of %d", e.Launcher, e.Job, e.Rank, e.Size)
}

func (c *Console) searching(e agent.Searching) {
	c.Status("%s (%v)", flagname.In(e.Searching.String()), e.Waited.Round(time.Second))
	c.suggest(e.Hint)
}

// alone tells how the other nodes can find this one.
func (c *Console) alone(e agent.Alone) {
	noBeacon := ""
	if e.NoBeacon {
		noBeacon = ", and no multicast beacon was received"
	}
	if !e.Explained {
		c.Info("no other agent has connected after %v%s", e.Waited.Rounded(), noBeacon)
	}
	c.suggest(e.Hint)
	switch {
	case e.Loopback != "":
		c.Info("hint: %s is each node's own: for agents on other nodes start every node with --store %s",
			e.Loopback, e.Store)
	case e.Store != "":
		c.Info("hint: if the other nodes cannot find this one, start every node with --store %s",
			e.Store)
	}
	if e.JoinLine != "" {
		c.Info("hint: put this before the command on a node that cannot join: %s", e.JoinLine)
	}
}

func (c *Console) storeFound(e agent.StoreFound) {
	switch {
	case e.Hosting && e.Addr == "":
		c.Verbose("hosting the store, for this agent alone")
	case e.Hosting:
		c.Verbose("hosting the store at %s", e.Addr)
	default:
		c.Verbose("connected to the store at %s from %s", e.Addr, e.Own)
	}
}

func (c *Console) worldAgreed(e agent.WorldAgreed) {
	if e.Seat.Spare {
		c.spare(e)
		return
	}
	w, last := e.World, e.Seat.Rank+e.Seat.Slots-1
	ranks := fmt.Sprintf("rank %d", last)
	if e.Seat.Slots > 1 {
		ranks = fmt.Sprintf("ranks %d to %d", e.Seat.Rank, last)
	}
	c.Verbose("all agents joined: this agent runs %s of %d on node %d of %d; MASTER_ADDR=%s "+
		"MASTER_PORT=%d",
		ranks, w.Size, e.Seat.Node, w.Nodes, w.MasterAddr, w.MasterPort)
	c.replaced(e)
	switch {
	case e.Seat.Rank != 0:
	case w.Attempt > 0 && w.MaxAgents > 0: // with other ranks than before
		c.Info("%s (restart %d of %d)", startLine(w), w.Attempt, w.MaxRestarts)
	case w.Attempt == 0 && (w.Nodes > 1 || len(w.Spares) > 0):
		c.Info("%s", startLine(w))
	}
}

// initProgress writes which ranks are missing, in a line of its own on a terminal too: the workers
// write to it as well.
func (c *Console) initProgress(e agent.InitProgress) {
	c.Info("%v", e.InitProgress)
	if e.Reached == e.Ranks {
		return
	}
	where := fmt.Sprintf("rdzv stacks, on any node of the job, shows where rank %d is", *e.First)
	if e.Python != 0 {
		where += fmt.Sprintf(" (pid %d on %s)", e.Python, e.Host)
	}
	c.suggest(where)
}

// startLine tells which ranks run on which nodes: on all of them if they fit into the line,
// otherwise on the first ones and the last one.
func startLine(w rdzv.World) (line string) {
	for _, first := range []int{w.Nodes, 2, 1, 0} {
		if first > len(w.Layout) || first == w.Nodes-1 {
			continue // not all are known, or the list would leave out none
		}
		line = Plural(w.Size, "rank") + " on " + Plural(w.Nodes, "node") +
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
	return fmt.Sprintf(" and %s (%s)", Plural(n, "spare"), shortList(w.Spares))
}

// lineWidth is the maximum length of a line that can be shortened.
const lineWidth = 100

// Plural is "1 node" or "2 nodes".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
