package console

import (
	"fmt"
	"time"

	"rdzv/envmap"
	"rdzv/rdzv/agent"
)

// Event writes what an event means for the user, if anything.
func (c *Console) Event(e agent.Event) {
	switch e := e.(type) {
	case agent.FlagIgnored:
		c.Info("%s does not hold: %s", e.Flag, e.Reason)
	case agent.Unprotected:
		c.Warn("--insecure: this job has no secret and no encryption, anybody who reaches its hosts can take part in it")
	case agent.Placed:
		c.placed(e)
	case agent.Alone:
		c.alone(e)
	case agent.DifferentToken:
		c.Info("%v", e.DifferentToken)
	case agent.DifferentCommand:
		c.Info("%v", e.DifferentCommand)
	case agent.RanksMissing:
		c.Info("waiting for all %d ranks to start (which are missing cannot be known before all are here)", e.Ranks)
	case agent.NoMulticast:
		c.Info("cannot look for the other nodes by multicast: %v", e.Err)
	case agent.StoreFound:
		c.storeFound(e)
	case agent.Waiting:
		c.Status("%v after %v", e.Roster, seconds(e.Seconds))
	case agent.WorldAgreed:
		c.EndStatus()
		c.worldAgreed(e)
	case agent.EnvironmentNote:
		c.Info("%s", e.Text)
	case agent.Stragglers:
		c.Info("%v", e.Stragglers)
	case agent.JobEnded:
		c.EndStatus()
		c.jobEnded(e)
	case agent.FailureReported:
		c.failureReported(e.Failure)
	case agent.Diagnostic:
		c.diagnostic(e)
	}
}

func (c *Console) diagnostic(d agent.Diagnostic) {
	if d.Severity == agent.Verbose {
		c.Verbose("%s", d.Text)
		return
	}
	c.Warn("%s", d.Text)
}

func (c *Console) placed(e agent.Placed) {
	if e.Launcher == envmap.None {
		c.Verbose("started by hand: job %s, %s", e.Job, Plural(e.Agents, "agent"))
		return
	}
	c.Verbose("started by %s: job %s, rank %d of %d", e.Launcher, e.Job, e.Rank, e.Size)
}

// alone tells how the other nodes can find this one.
func (c *Console) alone(e agent.Alone) {
	c.Info("no other agent has connected after %v", seconds(e.Seconds))
	if e.Store != "" {
		c.Info("hint: if the other nodes cannot find this one, start every node with --store %s", e.Store)
	}
	if e.JoinLine != "" {
		c.Info("hint: put this before the command on a node that cannot find this one: %s", e.JoinLine)
	}
}

func (c *Console) storeFound(e agent.StoreFound) {
	where := "in this process, for this agent alone"
	switch {
	case e.Hosting && e.Addr != "":
		where = "in this process"
	case !e.Hosting:
		where = fmt.Sprintf("at %s, and this agent at %s", e.Addr, e.Own)
	}
	c.Verbose("the store is %s", where)
}

func (c *Console) worldAgreed(e agent.WorldAgreed) {
	w, last := e.World, e.Seat.Rank+e.Seat.Slots-1
	ranks := fmt.Sprintf("rank %d", last)
	if e.Seat.Slots > 1 {
		ranks = fmt.Sprintf("ranks %d to %d", e.Seat.Rank, last)
	}
	c.Verbose("all are here: this agent runs %s of %d, on node %d of %d; rank 0 is at %s port %d",
		ranks, w.Size, e.Seat.Node, w.Nodes, w.MasterAddr, w.MasterPort)
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Second)
}

// Plural is "1 node" or "2 nodes".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
