package agent

import (
	"fmt"
	"strings"
	"time"

	"rdzv/internal/plural"
	"rdzv/internal/shell"
	"rdzv/rdzv"
	"rdzv/rdzv/restart"
	"rdzv/wrap"
)

// JobEnded says how the job ended. Every agent reports it once, as soon as it knows. Its workers
// may still be running then, and are stopped.
type JobEnded struct {
	Job string `json:"job"` // name of the job
	// how the job ended, the same on every agent; null if the store was lost before there was a
	// verdict
	Verdict *rdzv.Verdict `json:"verdict"`
	// whether the store is in this process
	Hosting bool `json:"hosting"`
	// whether this agent leads the job: it hosts the store, or was elected in an etcd cluster
	Leads  bool `json:"leads"`
	Agreed bool `json:"-"` // the world was agreed
	// whether the verdict is about this agent or a worker of it
	Own bool `json:"own"`
	// whether this agent tells the user: under a launcher, one agent of each node does
	Announce bool `json:"announce"`
	// whether `failure_reported` follows, unless the store is lost before
	ReportFollows bool `json:"report_follows"`
	// node of the agent that hosts the store
	StoreHost string `json:"store_host,omitempty"`
	// first rank of that agent
	StoreRank int `json:"store_rank"`
	// how long that agent was silent before it counted as lost
	StoreSilent rdzv.Seconds `json:"store_silent_seconds,omitempty"`
	// URLs of the etcd cluster that is the store
	Etcd      string `json:"etcd,omitempty"`
	StoreLost string `json:"store_lost,omitempty"` // why the store was lost
	// EtcdLost is why the cluster is, without the words "lost the store".
	EtcdLost string `json:"-"`

	// `lost` with `--max-restarts`: why no other attempt follows, as in `failure_reported`
	NoRestart restart.Reason `json:"no_restart,omitempty"`
	Attempt   int            `json:"-"`              // the last one, with NoRestart
	Hint      string         `json:"hint,omitempty"` // what to try

	JoinTimeout time.Duration `json:"-"` // that of this agent
}

func (JobEnded) Type() string { return "job_ended" }

// String is why the job ended, in one line except if several problems prevented it from starting.
func (e JobEnded) String() string {
	v := e.Verdict
	switch {
	case v == nil:
		return e.storeLoss()
	case v.Kind == rdzv.Failed:
		return failed(v, "failed first")
	case v.Kind == rdzv.Ended && v.PID != 0:
		return e.signalled()
	case v.Kind == rdzv.Straggling && v.Stragglers != nil:
		return fmt.Sprintf("stopping %s: %s (--exit-timeout)", v.Stragglers.Names(), v.Stragglers.Still())
	case v.Kind == rdzv.Incomplete:
		return timedOut(e.JoinTimeout, v.Error())
	}
	return v.Error()
}

// Brief is String without all problems but the first, for an agent whose user is told the others by
// the agent that leads.
func (e JobEnded) Brief() string {
	if v := e.Verdict; v != nil && v.Kind == rdzv.Unready && len(v.Problems) > 0 {
		return v.Problems[0].Error()
	}
	return e.String()
}

// Left is that this agent has left the job, which goes on.
func (e JobEnded) Left() string {
	if v := e.Verdict; v != nil && v.Host != "" {
		return v.Host + " has left the job, which goes on: received " + v.Signal.String()
	}
	return "this agent has left the job, which goes on"
}

// NotRestarted is why no other attempt follows; "" if that is not known, or was no question.
func (e JobEnded) NotRestarted() string {
	if e.NoRestart == "" || e.Verdict == nil {
		return ""
	}
	return notRestarted(e.NoRestart, e.Attempt, e.Verdict.Code, e.Verdict.Signal)
}

// failed says how the worker ended that a verdict is about.
func failed(v *rdzv.Verdict, verb string) string {
	if v.PID == 0 {
		return fmt.Sprintf("%s (rank %d on %s)", v.Text, v.Rank, v.Host)
	}
	line := fmt.Sprintf("rank %d %s: %s after %s on %s (local rank %d, pid %d)", v.Rank, verb,
		rdzv.ExitStatus(v.Code, v.Signal), briefly(v.RanFor), v.Host, v.LocalRank, v.PID)
	if v.OOM {
		line += ": " + outOfMemory
	}
	if v.Text != "" {
		line += ": " + v.Text
	}
	return line
}

const outOfMemory = "the kernel's out-of-memory killer killed a process of its cgroup"

// briefly is a duration with a sensible number of digits: 0.32s, 12.4s, 12m4s.
func briefly(s rdzv.Seconds) string {
	switch d := time.Duration(s); {
	case d < time.Second:
		return fmt.Sprintf("%.2fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	default:
		return d.Round(time.Second).String()
	}
}

// signalled says which agent has ended the job because of a signal. A launcher may have sent that
// because another agent has died.
func (e JobEnded) signalled() string {
	v, early, why := e.Verdict, "", ""
	line := v.Host + " received " + v.Signal.String()
	if v.Caller {
		line = "the agent on " + v.Host + " was stopped by its caller"
	}
	if !e.Agreed {
		early = " before all agents had joined"
	}
	if v.Text != "" {
		why = ", because " + v.Text
	}
	return line + early + ": the job is stopped" + why
}

func timedOut(after time.Duration, reason string) string {
	return fmt.Sprintf("timed out after %v (--join-timeout): %s", after, reason)
}

// storeLoss names the agent whose loss ended the job for this one. If it was silent, it may be this
// node that is disconnected.
func (e JobEnded) storeLoss() string {
	agent := fmt.Sprintf("rank %d's agent on %s", e.StoreRank, e.StoreHost)
	and := ", which hosted the store"
	switch {
	case e.EtcdLost != "":
		return fmt.Sprintf("lost etcd at %s: %s", e.Etcd, e.EtcdLost)
	case e.StoreLost != "": // a shared store, or a value in the store that cannot be read
		return e.StoreLost
	case e.StoreHost == "":
		agent, and = fmt.Sprintf("the agent that hosted the store of job %q", e.Job), ""
	case e.StoreRank == rdzv.Unknown:
		agent = "the agent on " + e.StoreHost
	}
	if e.StoreSilent == 0 {
		return "lost " + agent + and
	}
	if and != "" {
		and += ","
	}
	return fmt.Sprintf("lost the connection to the other agents: %s%s was silent for %v",
		agent, and, e.StoreSilent)
}

// AttemptFailed says that a worker failed, an agent was lost, or an agent leaves, in a job whose
// workers may be started again (`--max-restarts`). Every agent reports it instead of [JobEnded], as
// soon as it knows. When all agents have settled, [Restarting] follows, or JobEnded if there is no
// other attempt. It also has the fields that the verdict of JobEnded has; `kind` is `failed`,
// `lost`, `stalled`, or `ended` if an agent leaves.
type AttemptFailed struct {
	Attempt int           `json:"attempt"` // which attempt has failed; 0 is the first
	Verdict *rdzv.Verdict `json:"-"`       // its fields are those of the event
	// whether it is about this agent or a worker of it
	Own bool `json:"own"`
	// whether this agent tells the user: under a launcher, the one that hosts the store does
	Announce bool `json:"announce"`
	// the worker has lost its connection to another one, whose agent may be lost; if it is, another
	// `attempt_failed` says so when all agents have settled
	MayBeConsequence bool `json:"may_be_consequence,omitempty"`
}

func (AttemptFailed) Type() string { return "attempt_failed" }

// String is why the attempt has failed, as the job's end would say it.
func (e AttemptFailed) String() string {
	switch {
	case e.Verdict.Withdrawn:
		return e.Verdict.Error()
	case e.MayBeConsequence:
		return failed(e.Verdict, "failed") + "; waiting to see whether an agent was lost"
	}
	return JobEnded{Verdict: e.Verdict}.String()
}

// Restarting says that all workers of the job are about to be started again. Every agent reports
// it, when all agents have settled; [WorldAgreed] follows unless the job ends before.
type Restarting struct {
	rdzv.Restart
	// how many attempts there may be after the first one
	MaxRestarts int  `json:"max_restarts"`
	Withdrawn   bool `json:"withdrawn,omitempty"` // this agent leaves the job
	Announce    bool `json:"announce"`            // as in `attempt_failed`

	JoinTimeout time.Duration `json:"-"` // that of this agent
}

func (Restarting) Type() string { return "restarting" }

func (e Restarting) String() string {
	wait := "waiting"
	if e.JoinTimeout > 0 {
		wait = fmt.Sprintf("waiting up to %v", e.JoinTimeout)
	}
	what := "restarting all workers"
	switch {
	case e.Withdrawn:
		return "the job goes on without this node"
	case e.Missing > 0:
		what = wait + " for " + plural.Of(e.Missing, "more node")
	case len(e.Vacant) > 0:
		what = wait + " for an agent in place of " + placesText(e.Vacant)
	case e.Delay > 0:
		what = fmt.Sprintf("restarting all workers in %v", e.Delay.Rounded())
	}
	return what + restartOf(e.Attempt, e.MaxRestarts)
}

// Hints say what to do about missing agents.
func (e Restarting) Hints() (hints []string) {
	if len(e.Vacant) > 0 {
		hints = append(hints, "start it again with the same command, there or on another node")
	}
	if e.Missing > 0 {
		hints = append(hints, "start the same command on other nodes")
	}
	return hints
}

// placesText is "node2 (ranks 4-7), node3 (rank 8)".
func placesText(nodes []rdzv.NodeRanks) string {
	texts := make([]string, len(nodes))
	for i, node := range nodes {
		texts[i] = fmt.Sprintf("%s (%s)", node.Host, rdzv.RanksText(node.Ranks))
	}
	return strings.Join(texts, ", ")
}

// Settling says that not all agents have settled 1 s after the end of the job or of an attempt.
// Every agent reports it, at most once for each.
type Settling struct {
	// workers of this agent that have not ended
	Running []WorkerStarted `json:"running,omitempty"`
	// other processes that its workers have left
	Left []wrap.Process `json:"left,omitempty"`
	// how long after the end of the job they get SIGKILL
	Wait rdzv.Seconds `json:"wait_seconds"`
}

func (Settling) Type() string { return "settling" }

// String says what of this agent's workers is left, "" if only other agents need the time.
func (e Settling) String() string {
	what := ""
	switch {
	case e.Wait <= 0:
		return ""
	case len(e.Running) > 0:
		what = ranksOf(e.Running) + " (pid " + pidsText(e.Running) + ")"
	case len(e.Left) > 0:
		what = "processes that the workers have left, " + processesText(e.Left) + ","
	default:
		return ""
	}
	return fmt.Sprintf("waiting up to %v for %s to exit", e.Wait, what)
}

// pidsText is "71, 72".
func pidsText(workers []WorkerStarted) string {
	var pids []string
	for _, w := range workers[:min(len(workers), maxNamed)] {
		pids = append(pids, fmt.Sprint(w.PID))
	}
	return strings.Join(pids, ", ")
}

// processesText is "71 (python3), 72 (sleep)".
func processesText(processes []wrap.Process) string {
	var names []string
	for _, p := range processes[:min(len(processes), maxNamed)] {
		names = append(names, fmt.Sprintf("%d (%s)", p.PID, p.Name))
	}
	if n := len(processes) - len(names); n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}

// Failure describes the worker that failed first, see [FailureReported]. Hint is known only to the
// agent of that worker.
type Failure struct {
	Job string `json:"job"` // name of the job
	// the program and its arguments
	Program []string `json:"program"`
	// number of workers of the job
	WorldSize int    `json:"world_size"`
	Host      string `json:"host"`       // node of the worker
	Rank      int    `json:"rank"`       // its rank
	LocalRank int    `json:"local_rank"` // its local rank
	// its process ID; 0 if it could not be started
	PID int `json:"pid"`
	// its exit code, 128+n for signal n
	Code   int         `json:"exit_code"`
	Signal rdzv.Signal `json:"signal,omitempty"` // the signal that ended it
	// whether it was killed by SIGKILL and the kernel ran out of memory meanwhile
	OOM     bool         `json:"out_of_memory"`
	Took    rdzv.Seconds `json:"ran_seconds"`       // from its start to its end
	Message string       `json:"message,omitempty"` // one line on the failure
	// its last lines of stderr, or its traceback
	Stderr []string `json:"stderr,omitempty"`
	// its stderr was a terminal, where it has been shown, and was not read
	OnTerminal bool `json:"stderr_on_terminal,omitempty"`
	// why not, unless that is so for every job of one worker: `--capture=never`, or the error because
	// of which it could not get a pseudoterminal
	Unread string `json:"stderr_unread,omitempty"`
	// the lines in `stderr` are those of stdout and stderr, which were one pipe (`--log-dir`) or one
	// terminal
	Joined bool `json:"stderr_with_stdout,omitempty"`
	// the file that has its output
	Log  string `json:"log,omitempty"`
	Hint string `json:"hint,omitempty"` // what to try
	// other workers that failed before they were told to stop; only that worker's agent, and some with
	// `--report`, know them
	Others []rdzv.FailedWorker `json:"others,omitempty"`
	// how many other workers lost their connection to another one, also if they were told to stop
	Disconnected int `json:"disconnected,omitempty"`
	// it has itself lost its connection to another one, or that is possible
	Consequence bool `json:"may_be_consequence,omitempty"`
	// workers that exited with 0 at most 2 s before; the failure may be the consequence
	Successes *rdzv.Successes `json:"successes,omitempty"`
	// in which attempt it failed, if not in the first
	Attempt int `json:"attempt,omitempty"`
	// with `--max-restarts`: why no other attempt follows: `max_restarts` (this was the last one),
	// `exit_code` (one after which there is none), `same_message` (two attempts failed early with
	// the same message), `import` (the first attempt failed early because of an import),
	// `agent_missing` (an agent was lost, or could not stop its workers in time), `mpi` (the workers
	// are MPI programs, which the launcher can start only once)
	NoRestart restart.Reason `json:"no_restart,omitempty"`

	// Elsewhere says that another agent has run it, perhaps as another program. If this one has,
	// Shown says that its stderr was shown where this agent writes, and Mixed that there may be lines
	// of others between those of its traceback, or after it.
	Elsewhere, Shown, Mixed bool `json:"-"`
}

// NotRestarted is why no other attempt follows; "" if that was no question.
func (f Failure) NotRestarted() string {
	if f.NoRestart == "" {
		return ""
	}
	return notRestarted(f.NoRestart, f.Attempt, f.Code, f.Signal)
}

func notRestarted(reason restart.Reason, attempt, code int, signal rdzv.Signal) string {
	why := string(reason)
	switch reason {
	case restart.Exhausted:
		why = fmt.Sprintf("this was the last of %s (--max-restarts %d)",
			plural.Of(attempt+1, "attempt"), attempt)
	case restart.Code:
		why = rdzv.ExitStatus(code, signal) + " is final"
	case restart.Repeated:
		why = fmt.Sprintf("two attempts failed with this message within %v of their start: "+
			"probably a bug of the program, not a fault", restart.Soon)
	case restart.Import:
		why = fmt.Sprintf("the first attempt failed within %v because of an import: "+
			"the next one would, too", restart.Soon)
	case restart.MPI:
		why = "the workers are MPI programs, which the launcher can start only once in each task"
	case restart.Lost:
		why = "an agent was lost, or could not stop its workers in time"
	}
	return "not restarted: " + why
}

// FailureReported describes the worker that failed first. The agent of that worker reports it, when
// all agents have settled; without a launcher every agent does. If that worker's agent is lost,
// another one reports it, without the lines of stderr, unless it has announced the failure
// ([JobEnded]).
type FailureReported struct {
	Failure
}

func (FailureReported) Type() string { return "failure_reported" }

// Report describes the failure in lines, of which the last ones say how the worker ended and name
// the exception. when is one of them, "" for none, and above says that the reader sees the worker's
// stderr before them.
func (f Failure) Report(when string, above bool) string {
	var b strings.Builder
	earlier := ""
	if f.Successes != nil { // the failure may be the consequence
		earlier = fmt.Sprintf(" (%v)", f.Successes)
	}
	fmt.Fprintf(&b, "rank %d of %d failed first%s\n", f.Rank, f.WorldSize, earlier)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-8s %s\n", name, value)
		}
	}
	if !f.Elsewhere {
		row("program", shell.Line(f.Program...))
	}
	row("when", when)
	row("where", fmt.Sprintf("%s, local rank %d, pid %d", f.Host, f.LocalRank, f.PID))
	row("log", f.Log)
	for _, line := range f.others() {
		row("others", line)
	}
	b.WriteString(f.output(above && !f.Mixed))
	row("how", rdzv.ExitStatus(f.Code, f.Signal)+" after "+briefly(f.Took))
	if f.OOM {
		row("", outOfMemory)
	}
	row("message", f.Message)
	return b.String()
}

// others says what became of other workers. Those that have lost a connection are only counted.
func (f Failure) others() (lines []string) {
	for _, o := range f.Others {
		if o.Disconnected {
			continue
		}
		line := fmt.Sprintf("rank %d on %s also failed: %s", o.Rank, o.Host,
			rdzv.ExitStatus(o.Code, o.Signal))
		if o.Text != "" {
			line += ": " + o.Text
		}
		lines = append(lines, line)
	}
	if f.Disconnected == 0 {
		return lines
	}
	their, to := "their", " to it"
	if f.Disconnected == 1 {
		their = "its"
	}
	if f.Consequence {
		to = " to another one, too"
	}
	return append(lines, fmt.Sprintf("%s lost %s connection%s",
		plural.Of(f.Disconnected, "other rank"), their, to))
}

// shortTraceback is how many of the last lines are repeated of those that are shown further above.
const shortTraceback = 10

// output is what the report has of the worker's stderr. One on a terminal may have printed nothing.
func (f Failure) output(above bool) string {
	lines, stream := f.Stderr, "stderr"
	if f.Joined {
		stream = "output"
	}
	switch {
	case f.OnTerminal && f.Unread != "":
		return "  its stderr is the terminal, which rdzv does not read (" + f.Unread + ")\n"
	case f.OnTerminal && f.Signal == 0:
		return "  its stderr is the terminal, which rdzv does not read; " +
			"--tag or --log-dir DIR puts the exception here\n"
	case above:
		return "  its " + stream + " is above\n"
	case len(lines) == 0:
		return ""
	case f.Shown && len(lines) > shortTraceback:
		lines = append([]string{"..."}, lines[len(lines)-shortTraceback:]...)
	}
	return "  last lines of " + stream + ":\n  | " + strings.Join(lines, "\n  | ") + "\n"
}

// Finished is the last event of every agent. All agents of the job have settled, or there was no
// job; no process of this agent's workers is left; and Run returns.
type Finished struct {
	// the code with which `rdzv exec` exits, the same on every agent of the job
	ExitCode int    `json:"exit_code"`
	Err      error  `json:"-"`              // of Run
	Text     string `json:"text,omitempty"` // the error of an agent that never joined
	Hint     string `json:"hint,omitempty"` // what to try about it
}

func (Finished) Type() string { return "finished" }
