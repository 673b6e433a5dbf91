package console

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// jobEnded says in one line, as soon as it is known, why the job has ended. The
// agent whose worker failed first says more when all have settled, see report.go.
func (c *Console) jobEnded(e agent.JobEnded) {
	v := e.Verdict
	switch {
	case v == nil:
		c.Error("%s", EndLine(e, c.joinTimeout))
	case v.Kind == rdzv.Done:
	case v.Kind == rdzv.Unready && !e.Hosting:
		first, _, _ := strings.Cut(v.Error(), "\n")
		c.Error("%s", first)
	default:
		c.Error("%s", EndLine(e, c.joinTimeout))
		c.Hint(strings.Join(v.Hints(), "\n"))
	}
}

// EndLine is one line on the job's end.
func EndLine(e agent.JobEnded, joinTimeout time.Duration) string {
	v := e.Verdict
	switch {
	case v == nil:
		return storeLost(e)
	case v.Kind == rdzv.Failed && v.PID == 0:
		return fmt.Sprintf("%s (rank %d on %s)", v.Text, v.Rank, v.Host)
	case v.Kind == rdzv.Failed:
		line := fmt.Sprintf("rank %d failed first: %s after %s on %s (local rank %d, pid %d)",
			v.Rank, StatusLine(v.Code, v.Signal), roundTime(v.Took), v.Host, v.LocalRank, v.PID)
		if v.Text != "" {
			line += ": " + v.Text
		}
		return line
	case v.Kind == rdzv.Ended:
		return fmt.Sprintf("the job was ended by %s to the agent on %s (pid %d)", SignalName(v.Signal), v.Host, v.PID)
	case v.Kind == rdzv.Incomplete:
		return fmt.Sprintf("cannot start the job: timed out after %v (--join-timeout): %s", joinTimeout, v.Error())
	}
	return v.Error()
}

// JoinTimedOut says that not all agents came in time.
func (c *Console) JoinTimedOut(e *agent.JoinTimeoutError) {
	c.Warn("%v (--join-timeout)", e)
	if e.Search != nil {
		c.Error("%s", strings.Join(append([]string{"cannot find the job's store:"}, e.Search.Lines()...), "\n  "))
		c.Hint(e.Search.Hint)
	}
}

// SignalledEarly says that a signal came before the job had begun, and returns what
// ended it.
func (c *Console) SignalledEarly(e *agent.SignalError) string {
	what := "ended by " + SignalName(int(e.Signal))
	c.Info("%s before the job had begun", what)
	return what
}

// storeLost says whose loss has ended the job for this agent.
func storeLost(e agent.JobEnded) string {
	switch {
	case e.StoreHost == "":
		return fmt.Sprintf("lost the agent that hosted the store of job %q", e.Job)
	case e.StoreRank == rdzv.Any:
		return fmt.Sprintf("lost the agent on %s, which hosted the store", e.StoreHost)
	}
	return fmt.Sprintf("lost rank %d's agent on %s, which hosted the store", e.StoreRank, e.StoreHost)
}

// StatusLine says how a worker ended.
func StatusLine(code, signal int) string {
	if signal != 0 {
		return "ended by " + SignalName(signal)
	}
	return fmt.Sprintf("exit %d", code)
}

// SignalName is SIGKILL for 9.
func SignalName(signal int) string {
	if name := unix.SignalName(syscall.Signal(signal)); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", signal)
}

// roundTime is a duration for people: 0.3s, 12.4s, 12m4s.
func roundTime(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%.2fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	default:
		return d.Round(time.Second).String()
	}
}
