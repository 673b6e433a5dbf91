package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/internal/hint"
	"rdzv/rdzv/agent/inspect"
)

const stopHelp = `Usage: rdzv stop [JOB]

    rdzv stop                                     on any node of the job

End your running job of this name, or your only job that has an agent on this
node; "rdzv help status" says how jobs are called. As after SIGTERM to "rdzv
exec", its workers on all nodes get SIGTERM, and SIGKILL after its --grace. No
attempt follows. Every agent says who has stopped the job, and exits with 143.
The command does not wait until the workers have ended.

Exit status:
    0        the job ends
    1        no job of yours runs on this node, or several do, or it does not
             answer
    2        wrong usage
`

// stop ends a job of this user.
func (a *app) stop(args []string) int {
	word := ""
	if err := a.parseAbout(flags.New("stop"), args, &word); err != nil {
		return a.usage(err, "stop")
	}
	ctx, end := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer end()
	job, err := jobToStop(ctx, word)
	if err != nil {
		return a.fail(err)
	}
	host, _ := os.Hostname()
	by := fmt.Sprintf("rdzv stop on %s", host)
	r, err := inspect.Stop(ctx, job, by)
	if err == nil {
		err = noAnswers("stop", r, job)
	}
	if err != nil {
		return a.fail(fmt.Errorf("cannot stop job %q: %w", job, err))
	}
	a.console.Info("stopping job %q on all nodes", job)
	return codeOK
}

// jobToStop is the one job that a word names, or the only one without it.
func jobToStop(ctx context.Context, word string) (string, error) {
	r, err := inspect.Names(ctx, word)
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot run stop: %w", err)
	case len(r.Wanted) == 1:
		return r.Wanted[0], nil
	case len(r.Wanted) > 1:
		return "", hint.With(
			errors.New("several jobs of yours run on this node: "+strings.Join(r.Wanted, ", ")),
			"rdzv stop JOB",
		)
	case word == "":
		return "", noAnswers("stop", r, "")
	}
	return "", fmt.Errorf("cannot stop job %q: %w", word, noAnswers("stop", r, word))
}
