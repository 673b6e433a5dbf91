package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/flagname"
	"rdzv/internal/shell"
	"rdzv/rdzv/agent/inspect"
	"rdzv/rdzv/status"
)

const statusHelp = `Usage: rdzv status [flags]

    rdzv status                                   on any node of the job
    rdzv status --json | jq '.jobs[].ranks[] | select(.cpu < 0.1)'

Print what each rank is doing, for all your running jobs that have an agent on
this node. The command asks the agents, and takes about a second.

    STATE     running, waiting (not started), blocked (in the kernel,
              uninterruptibly), stopped (SIGSTOP, debugger), exit N, SIGNAL,
              or "no answer" from its agent
    SINCE     how long ago it started, or ended
    INIT      it has reached torch's init_process_group
    OUTPUT    how long ago it last wrote something that rdzv reads: to stderr,
              unless that is a terminal; with --tag or --log-dir also to stdout
    CPU       of it and its descendants in the last second; 100% is one core
    COLL      number of collective operations that it has launched, if NCCL
              reports it (2.28.7 and later); below the table, the ranks that are
              behind

With more than 16 ranks, ranks of a node that are doing the same share a row.

{flags}

Exit status:
    0        printed
    1        no job of yours runs on this node, or it does not answer
    2        wrong usage
`

// statusFlags are the flags of status.
type statusFlags struct {
	job   string
	json  bool
	watch bool
	all   bool
	dump  bool
}

// groups are the flags as the help shows them.
func (f *statusFlags) groups() []group {
	return []group{{noEnv: true, rows: []flagRow{
		{"--job NAME", "only the job of this name", &f.job},
		{"--json", "print one JSON object", &f.json},
		{"--watch", "print it again every 2 seconds, in place on a terminal, until no job is left",
			&f.watch},
		{"--all", "the jobs of all users on this node; for root", &f.all},
	}}}
}

// status prints what the jobs of this user on this node are doing.
func (a *app) status(args []string) int {
	var o statusFlags
	rest, _, err := parse(define(newFlags("status"), o.groups()), args, a.env)
	if err == nil && len(rest) > 0 {
		err = hinted{fmt.Errorf("cannot run status: unexpected argument %q", rest[0]),
			shell.Line("rdzv", "status", "--job", rest[0])}
	}
	if err == nil && o.all && os.Geteuid() != 0 {
		err = errors.New("cannot run status: --all is for root: other users' agents answer nobody else")
	}
	if err != nil {
		return a.usage(err, "status")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	for {
		code, jobs := a.printStatus(ctx, o)
		if !o.watch || jobs == 0 {
			return code
		}
		select {
		case <-time.After(watchInterval):
		case <-ctx.Done():
			return a.endWatch()
		}
	}
}

// endWatch ends the line in which a terminal has Ctrl-C.
func (a *app) endWatch() int {
	if a.onTerminal().Rewrites() {
		return a.print("\n")
	}
	return codeOK
}

// watchInterval is how long --watch waits before it asks again.
const watchInterval = 2 * time.Second

// printStatus prints the present state, and returns of how many jobs.
func (a *app) printStatus(ctx context.Context, o statusFlags) (code, jobs int) {
	ask := inspect.Status
	if o.all {
		ask = inspect.StatusOfAllUsers
	}
	r, err := ask(ctx, o.job)
	switch {
	case o.watch && ctx.Err() != nil: // what was printed last remains
		return a.endWatch(), 0
	case err != nil:
		return a.fail(fmt.Errorf("cannot run status: %w", err)), 0
	}
	writeFlags(r.Jobs)
	screen := a.onTerminal()
	text := string(indented(r))
	if !o.json {
		text = console.StatusTable(r.Jobs, screen.Width())
		if o.watch && screen.Rewrites() {
			text = screen.Cut(text, len(r.Silent)+1)
		}
		text = screen.Paint(text, console.StatusMarks)
	}
	if o.watch && screen.Rewrites() {
		text = console.InPlace(text)
	}
	return max(a.print(text), a.unanswered("status", r, o.job)), len(r.Jobs)
}

// writeFlags writes flags in place of fields in how jobs ended before their workers ran. After that
// the text can contain a worker's message.
func writeFlags(jobs []status.Job) {
	for i, j := range jobs {
		if j.WorldSize == 0 {
			jobs[i].Ending = flagname.In(j.Ending)
		}
	}
}

// unanswered prints which jobs have not answered a command, and returns its exit code.
func (a *app) unanswered(command string, r status.Report, job string) int {
	if len(r.Silent) > 0 && len(r.Jobs) > 0 && job == "" {
		a.console.Warn("%v", silent(r.Silent))
	}
	if err := noAnswers(command, r, job); err != nil {
		return a.fail(err)
	}
	return codeOK
}

// noAnswers is why no job has answered, or one has not; nil if all have.
func noAnswers(command string, r status.Report, job string) error {
	own := console.UserName(os.Geteuid())
	host, _ := os.Hostname()
	unknown := func(j status.Job) bool { return j.State == "" }
	switch {
	case slices.ContainsFunc(r.Jobs, unknown):
		return errors.New("a job has not answered")
	case len(r.Jobs) > 0:
		return nil
	case len(r.Silent) > 0:
		return hinted{silent(r.Silent), "it may be stopped, or this node overloaded"}
	case len(r.Names) > 0 && job != "": // without a name they have ended meanwhile
		return hinted{
			fmt.Errorf("user %s has no job %q on %s", own, job, host),
			"the jobs are " + strings.Join(r.Names, ", "),
		}
	case len(r.Elsewhere) > 0:
		return hinted{
			fmt.Errorf("user %s has a job on %s, but in another network namespace: %s", own, host,
				agents(r.Elsewhere)),
			"run rdzv " + command + " there, for example inside the container",
		}
	case len(r.Others) > 0:
		other := console.UserName(r.Others[0])
		return hinted{
			fmt.Errorf("user %s has no job on %s, but user %s has", own, host, other),
			"only that user can run rdzv " + command + " for it",
		}
	}
	return hinted{
		fmt.Errorf("user %s has no job on %s", own, host),
		"run rdzv " + command + " on a node of the job, as the user who started it",
	}
}

func silent(pids []int) error { return errors.New("no answer from " + agents(pids)) }

// agents is "agent (pid 71)" or "agents (pids 71, 72)".
func agents(pids []int) string {
	slices.Sort(pids)
	if len(pids) == 1 {
		return fmt.Sprintf("agent (pid %d)", pids[0])
	}
	texts := make([]string, len(pids))
	for i, pid := range pids {
		texts[i] = strconv.Itoa(pid)
	}
	return fmt.Sprintf("agents (pids %s)", strings.Join(texts, ", "))
}

const stacksHelp = `Usage: rdzv stacks [flags]

    rdzv stacks                                   on any node of the job

Print the stack of each rank, for all your running jobs that have an agent on
this node. Ranks with the same stack are one group; if most ranks are in one
group, the first line names the others. The command takes about a second, and
changes nothing in the workers.

With py-spy (pip install py-spy) in PATH or beside python on the nodes, the
stack is the Python stack of the main thread, the innermost call first. Without
py-spy, or if it may not read the memory of the workers, the command prints what
the main thread is doing in the kernel, such as "reading from a file (read)".
The lines below have the file or the other end of the connection ("with"), the
state as ps shows it, the kernel function (wchan), the use of CPU time in the
last second (100% is one core), and what the other threads are doing.

{flags}

Exit status:
    0        printed
    1        no job of yours runs on this node, or it does not answer
    2        wrong usage
`

// stacksGroups are the flags of stacks as its help shows them.
func (f *statusFlags) stacksGroups() []group {
	return []group{{noEnv: true, rows: []flagRow{
		{"--job NAME", "only the job of this name", &f.job},
		{"--flight-recorder", "also let torch's flight recorder of NCCL write its files, with exec " +
			"--log-dir beside the logs", &f.dump},
	}}}
}

// stacks prints where the workers of this user's jobs on this node are.
func (a *app) stacks(args []string) int {
	var o statusFlags
	rest, _, err := parse(define(newFlags("stacks"), o.stacksGroups()), args, a.env)
	if err == nil && len(rest) > 0 {
		err = hinted{fmt.Errorf("cannot run stacks: unexpected argument %q", rest[0]),
			shell.Line("rdzv", "stacks", "--job", rest[0])}
	}
	if err != nil {
		return a.usage(err, "stacks")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	jobs, known, err := inspect.Stacks(ctx, o.job, o.dump)
	if err != nil {
		return a.fail(fmt.Errorf("cannot run stacks: %w", err))
	}
	text := a.painted(console.StacksTable(jobs, a.onTerminal().Width()), console.StacksMarks)
	return max(a.print(text), a.unanswered("stacks", known, o.job))
}
