package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/rdzv"
	"rdzv/rdzv/meet"
	"rdzv/wrap"
)

// couldNotJoin says why there is no job, and returns the exit code.
func (g *agent) couldNotJoin(err error) int {
	var late *meet.NotFoundError
	switch {
	case errors.Is(err, errLate):
		g.say.line("cannot join job %q: not all of %d agents came within %v (--join-timeout)", g.name, g.agents, g.joinTimeout)
		if errors.As(err, &late) {
			g.say.hint(late.Error())
		}
		return codeIncomplete
	case isSignal(err):
		g.say.news("%v", err)
		return errorCode(err)
	default:
		return g.say.fail(errorCode(err), err)
	}
}

func isSignal(err error) bool {
	var s signalled
	return errors.As(err, &s)
}

// endOnSignal makes the next signal from outside end the job on all nodes, until
// the returned function is called.
func (g *agent) endOnSignal() (stop func()) {
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case s := <-g.outside.ending:
				g.end(s.(syscall.Signal))
			case <-stopped:
				return
			}
		}
	}()
	return func() {
		close(stopped)
		<-done
	}
}

func (g *agent) end(s syscall.Signal) {
	ctx, cancel := context.WithTimeout(context.Background(), tellTimeout)
	defer cancel()
	if err := g.session.End(ctx, int(s)); err != nil {
		g.say.detail("%v", err)
	}
}

// tellEnd says at once, in one line, why the job ended before its workers ran.
func (g *agent) tellEnd() {
	if v := g.session.Verdict(); v != nil && v.Kind != rdzv.Unready && v.Kind != rdzv.Incomplete {
		g.say.line("%s", endLine(v, g.joinTimeout))
	}
}

// report says, when all agents have settled, how the job ended. Success is
// silent.
func (g *agent) report(s rdzv.Summary, results []wrap.Result) {
	v := s.Verdict
	switch {
	case v == nil:
		g.say.line("lost the agent that hosted the store of job %q", g.name)
	case v.Kind == rdzv.Done:
	case v.Kind == rdzv.Failed && v.By != g.self.ID:
		g.say.line("%s", endLine(v, 0))
	default:
		g.say.line("%s", endLine(v, g.joinTimeout))
		for _, f := range s.Failures {
			g.say.line("rank %d on %s failed too: %s", f.Rank, f.Host, statusLine(f.Code, f.Signal))
		}
	}
}

// endLine is one line, or for Unready one for each problem, on the job's end.
func endLine(v *rdzv.Verdict, joinTimeout time.Duration) string {
	switch v.Kind {
	case rdzv.Failed:
		return fmt.Sprintf("rank %d failed first: %s after %s on %s (local rank %d, pid %d)",
			v.Rank, statusLine(v.Code, v.Signal), roundTime(v.Took), v.Host, v.LocalRank, v.PID)
	case rdzv.Ended:
		return fmt.Sprintf("the job was ended by %s to the agent on %s (pid %d)", signalName(syscall.Signal(v.Signal)), v.Host, v.PID)
	case rdzv.Lost:
		return "lost " + v.Text + ": it went without a word"
	case rdzv.Incomplete:
		return "cannot start the job: " + v.Text + " (--join-timeout)"
	default:
		return v.Text
	}
}

// statusLine says how a worker ended.
func statusLine(code, signal int) string {
	if signal != 0 {
		return "ended by " + signalName(syscall.Signal(signal))
	}
	return fmt.Sprintf("exit %d", code)
}

// signalName is SIGKILL for 9.
func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}

// roundTime is a duration for people: 0.3s, 12.4s, 12m4s.
func roundTime(d time.Duration) string {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return strings.TrimSuffix(d.Round(time.Second).String(), "0s")
}
