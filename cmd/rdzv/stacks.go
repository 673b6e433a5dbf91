package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/tables"
	"rdzv/rdzv/agent/inspect"
	"rdzv/rdzv/stacks"
)

const stacksHelp = `Usage: rdzv stacks [flags] [JOB]

    rdzv stacks                                   on any node of the job
    rdzv stacks train                             only this job, see rdzv status

Print the stack of each rank, for all your running jobs that have an agent on
this node. Ranks with the same stack are one group. The first line names the
ranks for which the others seem to wait, and where they are: those outside the
largest group, if that has most ranks, or those that do not wait themselves. The
command takes about a second, and changes nothing in the workers.

With py-spy (pip install py-spy) in PATH or beside python on the nodes, the
stack is the Python stack of the main thread, the innermost call first. Without
py-spy, or if it may not read the memory of the workers, the command prints what
the main thread is doing in the kernel, such as "reading from a file (read)".
The lines below have the file or the other end of the connection ("with"), the
use of CPU time in the last second (100% is one core), and what the other
threads are doing. "Uninterruptible" means that a disk, a file server or a
device has not answered, and that no signal ends the process before it does;
then the kernel function is named.

{flags}

Exit status:
    0        printed
    1        no job of yours runs on this node, or it does not answer
    2        wrong usage
`

// stacksFlags are the flags of stacks.
type stacksFlags struct {
	job  string
	json bool
}

// groups are the flags as the help shows them.
func (f *stacksFlags) groups() []flags.Group {
	return []flags.Group{flags.Output(&f.json), {NoEnv: true, Rows: []flags.Row{
		flags.Flag("--job JOB", "only this job, as the argument JOB", &f.job),
	}}}
}

// stacks prints where the workers of this user's jobs on this node are.
func (a *app) stacks(args []string) int {
	var o stacksFlags
	err := a.parseAbout(flags.Define(flags.New("stacks"), o.groups()), args, &o.job)
	if err != nil {
		return a.usage(err, "stacks")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	jobs, known, err := inspect.Stacks(ctx, o.job)
	if err != nil {
		return a.fail(fmt.Errorf("cannot run stacks: %w", err))
	}
	data := map[string][]stacks.Report{"jobs": jobs}
	table := func(to console.Destination) string { return tables.Stacks(jobs, to) }
	return max(a.show(o.json, data, table), a.unanswered("stacks", known, o.job))
}
