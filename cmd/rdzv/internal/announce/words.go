package announce

import (
	"fmt"
	"strings"
	"time"

	"rdzv/cmd/rdzv/internal/visible"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// words are the sentences about the end of a job.
type words struct {
	joinTimeout time.Duration // the value of --join-timeout
}

// endLine is why the job ended, in one line except if several problems prevented it from starting.
func (w words) endLine(e agent.JobEnded) string {
	v := e.Verdict
	switch {
	case v == nil:
		return storeLost(e)
	case v.Kind == rdzv.Failed && v.PID == 0:
		return fmt.Sprintf("%s (rank %d on %s)", v.Text, v.Rank, v.Host)
	case v.Kind == rdzv.Failed:
		line := fmt.Sprintf("rank %d failed first: %s after %s on %s (local rank %d, pid %d)",
			v.Rank, StatusLine(v.Code, v.Signal), roundTime(v.RanFor), v.Host, v.LocalRank, v.PID)
		if v.OOM {
			line += ": " + outOfMemory
		}
		if v.Text != "" {
			line += ": " + visible.Uncoloured(v.Text)
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
		line := v.Host + " received " + v.Signal.String()
		if v.Caller {
			line = "the agent on " + v.Host + " was stopped by its caller"
		}
		return line + early + ": the job is stopped" + why
	case v.Kind == rdzv.Straggling && v.Stragglers != nil:
		return stopping(*v.Stragglers)
	case v.Kind == rdzv.Stalled && v.Stall != nil:
		return stallLine(*v.Stall)
	case v.Kind == rdzv.Incomplete:
		return w.timedOut(v.Error())
	}
	return v.Error()
}

const outOfMemory = "the kernel's out-of-memory killer killed a process of its cgroup"

// Left is that this agent has left a job, which goes on.
func Left(e agent.JobEnded) string {
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

func (w words) timedOut(reason string) string {
	return fmt.Sprintf("timed out after %v (--join-timeout): %s", w.joinTimeout, reason)
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

// upToTimeout is " up to 10m0s", or "" without a limit.
func (w words) upToTimeout() string {
	if w.joinTimeout == 0 {
		return ""
	}
	return fmt.Sprintf(" up to %v", w.joinTimeout)
}
