package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/tables"
	"rdzv/rdzv/agent/inspect"
)

const statusHelp = `Usage: rdzv status [flags] [JOB]

    rdzv status                                   on any node of the job
    rdzv status train                             only the job of train.py
    rdzv status -o json | jq '.jobs[].ranks[] | select(.cpu < 0.1)'

Print what each rank is doing, for all your running jobs that have an agent on
this node. The command asks the agents, and takes about a second.

A job is called as exec --job says, or else by the name of its script without
.py, its module (-m), or its program. If two jobs have the same name, four
digits tell them apart: train-0b00. JOB may also be the beginning of a name, if
no other name begins so, or what the launcher calls the job.

    STATE     running, waiting (not started), blocked (in the kernel,
              uninterruptibly), stopped (SIGSTOP, debugger), exit N, SIGNAL,
              or "no answer" from its agent
    SINCE     how long ago it started, or ended
    INIT      it has reached torch's init_process_group
    OUTPUT    how long ago it last wrote something that rdzv reads: to stderr,
              unless that is a terminal; with --tag or --log-dir also to stdout
    LAST LINE what it last wrote of that, if the line has room for it
    CPU       of it and its descendants in the last second; 100% is one core
    GPU       use of its GPU, and of the memory of that in GiB (GPU MEM), also
              by others, if nvidia-smi or rocm-smi answers within a second
    COLL      number of collective operations that it has launched, if NCCL
              reports it (2.28.7 and later); below the table, the ranks that are
              behind

With more than 16 ranks, ranks of a node that are doing the same share a row.

{flags}

Exit status:
    0        printed
    1        no job of yours runs on this node, or it does not answer; not if it
             has ended while it was watched
    2        wrong usage
`

// statusFlags are the flags of status.
type statusFlags struct {
	job     string
	json    bool
	watch   bool
	verbose bool
	all     bool
}

// groups are the flags as the help shows them.
func (f *statusFlags) groups() []flags.Group {
	return []flags.Group{flags.Output(&f.json), {NoEnv: true, Rows: []flags.Row{
		flags.Flag("--job JOB", "only this job, as the argument JOB", &f.job),
		flags.Flag("--json", "as -o json", &f.json),
		flags.Flag("-w, --watch",
			"print it again every 2 seconds, in place on a terminal, until the job has ended", &f.watch),
		flags.Flag("-v, --verbose", "also the processes of rdzv (AGENT)", &f.verbose),
		flags.Flag("--all", "the jobs of all users on this node; for root", &f.all),
	}}}
}

// status prints what the jobs of this user on this node are doing.
func (a *app) status(args []string) int {
	var o statusFlags
	err := a.parseAbout(flags.Define(flags.New("status"), o.groups()), args, &o.job)
	if err == nil && o.all && os.Geteuid() != 0 {
		err = errors.New("cannot run status: --all is for root: other users' agents answer nobody else")
	}
	if err != nil {
		return a.usage(err, "status")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	v := &view{app: a, flags: o, to: a.out(false)}
	if o.watch {
		return v.watch(ctx)
	}
	code, _ := v.print(ctx)
	return code
}

// view prints the state of the jobs: once or, with --watch, again and again.
type view struct {
	app   *app
	flags statusFlags
	to    console.Destination
	seen  bool // a job was there before
}

// watchInterval is how long --watch waits before it asks again.
const watchInterval = 2 * time.Second

// watch prints the state until no job is left or ctx ends.
func (v *view) watch(ctx context.Context) int {
	for {
		code, jobs := v.print(ctx)
		if jobs == 0 {
			return code
		}
		v.seen = true
		select {
		case <-time.After(watchInterval):
		case <-ctx.Done():
			return v.end()
		}
	}
}

// end ends the line in which a terminal has Ctrl-C.
func (v *view) end() int {
	if v.to.Rewrites() {
		return v.app.print("\n")
	}
	return codeOK
}

// print prints the present state, and returns of how many jobs.
func (v *view) print(ctx context.Context) (code, jobs int) {
	ask := inspect.Status
	if v.flags.all {
		ask = inspect.StatusOfAllUsers
	}
	r, err := ask(ctx, v.flags.job)
	switch {
	case v.flags.watch && ctx.Err() != nil: // what was printed last remains
		return v.end(), 0
	case err != nil:
		return v.app.fail(fmt.Errorf("cannot run status: %w", err)), 0
	case v.seen && len(r.Jobs) == 0 && len(r.Silent) == 0:
		what := "all jobs have ended"
		if v.flags.job != "" {
			what = "job " + v.flags.job + " has ended"
		}
		v.app.console.Info("%s", what)
		return codeOK, 0
	}
	shown := v.app.show(v.flags.json, r, func(to console.Destination) string {
		table := tables.Status(r.Jobs, to, v.flags.verbose)
		if v.flags.watch && to.Rewrites() {
			table = to.InPlace(table, len(r.Silent)+1)
		}
		return table
	})
	return max(shown, v.app.unanswered("status", r, v.flags.job)), len(r.Jobs)
}
