package console

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"rdzv/cmd/rdzv/internal/flagname"
	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// jobEnded writes in one line why the job ended, as soon as that is known, unless another agent of
// this node does. The agent whose worker failed first writes a report when all agents have settled,
// see report.go, and the line only if that takes some time.
func (c *Console) jobEnded(e agent.JobEnded) {
	v := e.Verdict
	written := c.attempt && c.held == "" && !(v != nil && v.Withdrawn) // by attemptFailed
	c.attempt, c.held, c.unsure = false, "", ""
	c.interrupted = v != nil && v.Kind == rdzv.Ended && v.Signal == rdzv.Signal(syscall.SIGINT)
	switch {
	case v != nil && v.Kind == rdzv.Done, written:
	case !e.Announce:
		c.Verbose("%s", c.EndLine(e))
	case v == nil:
		c.Error("%s", c.EndLine(e))
	case v.Kind == rdzv.Failed && e.Own:
		c.held = c.EndLine(e)
	case v.Kind == rdzv.Unready && !e.Leads: // the agent that leads prints all problems
		first, _, _ := strings.Cut(c.EndLine(e), "\n")
		c.Error("%s", first)
	default:
		c.Error("%s", c.EndLine(e))
		c.Hint(strings.Join(v.Hints(), "\n"))
		c.hintIncomplete(v)
		if v.Kind == rdzv.Stalled && e.NoRestart != "" {
			c.Info("not restarted: %s", noRestart(agent.Failure{NoRestart: e.NoRestart, Attempt: e.Attempt,
				Code: v.Code}))
		}
	}
	if e.Announce {
		c.Hint(e.Hint)
	}
}

// hintIncomplete says how missing agents of a job without a launcher are started.
func (c *Console) hintIncomplete(v *rdzv.Verdict) {
	if v.Kind == rdzv.Incomplete && c.launcher == envmap.None && len(v.Problems) == 0 {
		c.Hint("start the same command on every node, with the same --nodes and --job, if given")
	}
}

// EndLine is why the job ended, in one line except if several problems prevented it from starting.
func (c *Console) EndLine(e agent.JobEnded) string {
	v := e.Verdict
	switch {
	case v == nil:
		return flagname.In(storeLost(e))
	case v.Kind == rdzv.Failed && v.PID == 0:
		return fmt.Sprintf("%s (rank %d on %s)", v.Text, v.Rank, v.Host)
	case v.Kind == rdzv.Failed:
		line := fmt.Sprintf("rank %d failed first: %s after %s on %s (local rank %d, pid %d)",
			v.Rank, StatusLine(v.Code, v.Signal), roundTime(v.RanFor), v.Host, v.LocalRank, v.PID)
		if v.OOM {
			line += ": " + outOfMemory
		}
		if v.Text != "" {
			line += ": " + uncoloured(v.Text)
		}
		return line
	case v.Kind == rdzv.Ended && v.PID != 0:
		early := "" // a launcher may have sent the signal because another agent has died
		if !e.Agreed {
			early = " before all agents had joined"
		}
		why := ""
		if v.Text != "" {
			why = ", because " + v.Text
		}
		reason := "received " + v.Signal.String()
		if v.Caller {
			reason = "was stopped by its caller"
		}
		return fmt.Sprintf("agent on %s (pid %d) %s%s: the job is stopped%s", v.Host, v.PID, reason,
			early, why)
	case v.Kind == rdzv.Straggling && v.Stragglers != nil:
		return stopping(*v.Stragglers)
	case v.Kind == rdzv.Stalled && v.Stall != nil:
		return stallLine(*v.Stall)
	case v.Kind == rdzv.Incomplete:
		return c.timedOut(v.Error())
	}
	return flagname.In(v.Error())
}

const outOfMemory = "the kernel's out-of-memory killer killed a process of its cgroup"

// Left is that this agent has left a job, which goes on.
func (c *Console) Left(e agent.JobEnded) string {
	if v := e.Verdict; v != nil && v.Host != "" {
		return v.Host + " has left the job, which goes on: received " + v.Signal.String()
	}
	return "this agent has left the job, which goes on"
}

// stopping says which workers are stopped after --exit-timeout.
func stopping(s rdzv.Stragglers) string {
	return fmt.Sprintf("stopping %s: still running %v after rank %d succeeded (--exit-timeout)",
		s.Names(), s.After, s.First)
}

// JoinTimedOut writes that this agent did not find the others in time, and returns that as a
// message.
func (c *Console) JoinTimedOut(e *agent.JoinTimeoutError) string {
	message := c.timedOut(e.Reason())
	c.Error("%s", message)
	c.hintOnce(agent.Hint(e))
	return message
}

func (c *Console) timedOut(reason string) string {
	return fmt.Sprintf("timed out after %v (--join-timeout): %s", c.joinTimeout, flagname.In(reason))
}

// EndedBySignal writes that a signal came before the job started, and returns that as a message. An
// agent that does not announce it is silent.
func (c *Console) EndedBySignal(e *agent.SignalError, announce bool) string {
	message := "received " + rdzv.Signal(e.Signal).String() + " before the job started"
	if e.By != "" {
		message = e.Error()
	}
	if e.Withdrawn {
		message = "received " + rdzv.Signal(e.Signal).String() + ": the job goes on without this agent"
	}
	if announce {
		c.Info("%s", message)
	}
	return message
}

// storeLost names the agent whose loss ended the job for this one.
func storeLost(e agent.JobEnded) string {
	switch {
	case e.StoreLost != "":
		if reason, lost := strings.CutPrefix(e.StoreLost, rdzv.ErrStoreLost.Error()+": "); lost {
			return fmt.Sprintf("lost etcd at %s: %s", e.Etcd, reason)
		}
		return e.StoreLost // a shared store, or a value in the store that cannot be read
	case e.StoreSilent > 0: // it may be this node that is disconnected
		return fmt.Sprintf("lost the connection to the other agents: %s was silent for %v",
			storeAgent(e), e.StoreSilent)
	}
	return "lost " + strings.TrimSuffix(storeAgent(e), ",")
}

// storeAgent names the agent that hosted the store, as far as it is known.
func storeAgent(e agent.JobEnded) string {
	switch {
	case e.StoreHost == "":
		return fmt.Sprintf("the agent that hosted the store of job %q", e.Job)
	case e.StoreRank == rdzv.Unknown:
		return fmt.Sprintf("the agent on %s, which hosted the store,", e.StoreHost)
	}
	return fmt.Sprintf("rank %d's agent on %s, which hosted the store,", e.StoreRank, e.StoreHost)
}

// StatusLine is how a worker ended.
func StatusLine(code int, signal rdzv.Signal) string {
	if signal != 0 {
		return "killed by " + signal.String()
	}
	return fmt.Sprintf("exit %d", code)
}

// roundTime is a duration with a sensible number of digits: 0.32s, 12.4s, 12m4s.
func roundTime(s rdzv.Seconds) string {
	switch d := time.Duration(s); {
	case d < time.Second:
		return fmt.Sprintf("%.2fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	default:
		return d.Round(time.Second).String()
	}
}
