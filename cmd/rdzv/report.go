package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/rdzv"
	"rdzv/rdzv/meet"
)

// couldNotJoin says why there is no job, and returns the exit code.
func (g *agent) couldNotJoin(err error) int {
	var nowhere *meet.NotFoundError
	var signal signalled
	switch {
	case errors.Is(err, errLate):
		late := fmt.Sprintf("cannot join job %q: not all of %d agents came within %v (--join-timeout)", g.name, g.agents, g.joinTimeout)
		g.say.line("%s", late)
		g.save(g.options, g.endReport(string(rdzv.Incomplete), codeIncomplete, late))
		if errors.As(err, &nowhere) {
			lines := append([]string{"cannot find the job's store:"}, nowhere.Lines()...)
			return g.say.fail(codeIncomplete, advice{errors.New(strings.Join(lines, "\n  ")), nowhere.Hint})
		}
		return codeIncomplete
	case errors.As(err, &signal): // what else was tried meanwhile is no news
		g.say.news("%v before the job had begun", signal)
		g.save(g.options, g.endReport(string(rdzv.Ended), signal.ExitCode(), signal.Error()))
		return signal.ExitCode()
	default:
		return g.exitWith(errorCode(err), err)
	}
}

// exitWith says an error that ends this agent but not the job, and returns the code.
func (g *agent) exitWith(code int, err error) int {
	g.save(g.options, endReport{
		Kind: endedByError, Job: g.name, Program: g.program, ExitCode: code, Message: err.Error(),
	})
	return g.say.fail(code, err)
}

// tellEnd says in one line, as soon as it is known, why the job has ended. The
// agent whose worker failed first says more when all have settled, see report.
func (g *agent) tellEnd() {
	v := g.session.Verdict()
	switch {
	case v == nil:
		g.say.bad("%s", g.storeLost())
	case v.Kind == rdzv.Done:
	case v.Kind == rdzv.Unready && g.conn.hosting():
		g.say.fail(0, advice{errors.New(v.Text), v.Hint})
	case v.Kind == rdzv.Unready:
		first, _, _ := strings.Cut(v.Text, "\n")
		g.say.bad("%s", first)
	default:
		g.say.fail(0, advice{errors.New(g.endLine(v)), v.Hint})
		g.reportEarly(v)
	}
}

// storeLost says whose loss has ended the job for this agent.
func (g *agent) storeLost() string {
	if g.world.StoreHost == "" {
		return fmt.Sprintf("lost the agent that hosted the store of job %q", g.name)
	}
	if g.world.StoreRank == rdzv.Any {
		return fmt.Sprintf("lost the agent on %s, which hosted the store", g.world.StoreHost)
	}
	return fmt.Sprintf("lost rank %d's agent on %s, which hosted the store", g.world.StoreRank, g.world.StoreHost)
}

// endLine is one line on the job's end.
func (g *agent) endLine(v *rdzv.Verdict) string {
	switch v.Kind {
	case rdzv.Failed:
		if v.PID == 0 {
			return fmt.Sprintf("%s (rank %d on %s)", v.Text, v.Rank, v.Host)
		}
		line := fmt.Sprintf("rank %d failed first: %s after %s on %s (local rank %d, pid %d)",
			v.Rank, statusLine(v.Code, v.Signal), roundTime(v.Took), v.Host, v.LocalRank, v.PID)
		if v.Text != "" {
			line += ": " + v.Text
		}
		return line
	case rdzv.Ended:
		return fmt.Sprintf("the job was ended by %s to the agent on %s (pid %d)", signalName(syscall.Signal(v.Signal)), v.Host, v.PID)
	case rdzv.Incomplete:
		return fmt.Sprintf("cannot start the job: timed out after %v (--join-timeout): %s", g.joinTimeout, v.Text)
	default:
		return v.Text
	}
}

// failure is the report on the worker that failed first, as --report writes it.
type failure struct {
	Kind      string   `json:"kind"`
	Job       string   `json:"job"`
	Program   []string `json:"program"`
	Rank      int      `json:"rank"`
	LocalRank int      `json:"local_rank"`
	WorldSize int      `json:"world_size"`
	Host      string   `json:"host"`
	PID       int      `json:"pid"`
	ExitCode  int      `json:"exit_code"`        // as a shell shows it: 128+n for signal n
	Signal    string   `json:"signal,omitempty"` // such as SIGKILL
	OOM       bool     `json:"out_of_memory,omitempty"`
	Seconds   float64  `json:"seconds"` // from its start to its end
	Message   string   `json:"message,omitempty"`
	Stderr    []string `json:"stderr,omitempty"` // its last words
	Others    []other  `json:"others,omitempty"` // that failed before they were stopped
}

type other struct {
	Rank    int    `json:"rank"`
	Host    string `json:"host"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

// report says, when all agents have settled, what is known of the worker that
// failed first. Only its own agent does. Of any other end the host of the store
// saves a report, or every agent if the host is lost.
func (g *agent) report(s rdzv.Summary, hostLost bool) {
	switch v := s.Verdict; {
	case v == nil:
		g.save(g.options, g.endReport(string(rdzv.Lost), jobCode(s), g.storeLost()))
	case v.Kind == rdzv.Failed && v.By == g.self.ID:
		g.reportFailure(s)
	case v.Kind == rdzv.Failed: // its agent does, see also reportEarly
	case v.Kind == rdzv.Done && (g.conn.hosting() || hostLost):
		g.save(g.options, g.endReport(endedWell, jobCode(s), ""))
	case g.conn.hosting() || hostLost:
		g.save(g.options, g.endReport(string(v.Kind), jobCode(s), g.endLine(v)))
	}
}

// reportFailure prints and saves what this agent knows of its worker's failure.
func (g *agent) reportFailure(s rdzv.Summary) {
	v := s.Verdict
	end := g.ends[v.Rank-g.world.Seat.Rank]
	f := g.failure(v)
	f.OOM, f.Stderr = end.oom, end.words
	for _, o := range s.Failures {
		f.Others = append(f.Others, other{o.Rank, o.Host, statusLine(o.Code, o.Signal), o.Text})
	}
	if hint := runHint(end.err, g.program); hint != "" {
		g.say.hint(hint)
	}
	if v.PID != 0 && g.world.Size > 1 { // alone, its own words and the one line stand right above
		g.say.bad("%s", f.text(statusLine(v.Code, v.Signal)+" after "+roundTime(v.Took)))
	}
	g.save(g.options, f)
}

// reportEarly saves what the host of the store knows of the failure of another
// agent's worker, before the host settles. Where both have the same file, that
// agent, which reports when all have settled, replaces it; where they have not, the
// host's tells of this job and not of an earlier one.
func (g *agent) reportEarly(v *rdzv.Verdict) {
	if !g.conn.hosting() || v.Kind != rdzv.Failed || v.By == g.self.ID {
		return
	}
	if _, ok := replaceable(g.options.report); ok { // who reads a FIFO wants one report
		g.save(g.options, g.failure(v))
	}
}

// failure is what every agent knows of the worker that failed first.
func (g *agent) failure(v *rdzv.Verdict) failure {
	f := failure{
		Kind: string(v.Kind), Job: g.name, Program: g.program, WorldSize: g.world.Size,
		Rank: v.Rank, LocalRank: v.LocalRank, Host: v.Host, PID: v.PID,
		ExitCode: workerCode(v.Code, v.Signal), Seconds: v.Took.Seconds(), Message: v.Text,
	}
	if v.Signal != 0 {
		f.Signal = signalName(syscall.Signal(v.Signal))
	}
	return f
}

// endReport is the report on another end of the job.
func (g *agent) endReport(kind string, code int, message string) endReport {
	return endReport{
		Kind: kind, Job: g.name, Program: g.program, WorldSize: g.world.Size,
		ExitCode: code, Message: message,
	}
}

// text is the report for people.
func (f failure) text(status string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "rank %d of %d failed first\n", f.Rank, f.WorldSize)
	fmt.Fprintf(&b, "  program  %s\n", strings.Join(f.Program, " "))
	fmt.Fprintf(&b, "  where    %s, local rank %d, pid %d\n", f.Host, f.LocalRank, f.PID)
	fmt.Fprintf(&b, "  how      %s\n", status)
	if f.OOM {
		b.WriteString("           the kernel ran out of memory in this cgroup meanwhile and killed a process\n")
	}
	if f.Message != "" {
		fmt.Fprintf(&b, "  message  %s\n", f.Message)
	}
	if len(f.Stderr) > 0 {
		b.WriteString("  its last words on standard error:\n")
		for _, line := range f.Stderr {
			b.WriteString("  | " + line + "\n")
		}
	}
	for _, o := range f.Others {
		fmt.Fprintf(&b, "rank %d on %s failed on its own too: %s", o.Rank, o.Host, o.Status)
		if o.Message != "" {
			b.WriteString(": " + o.Message)
		}
		b.WriteString("\n")
	}
	return b.String()
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
	switch {
	case d < time.Second:
		return fmt.Sprintf("%.2fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	default:
		return d.Round(time.Second).String()
	}
}
