package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/tables"
	"rdzv/internal/hint"
	"rdzv/rdzv/status"
)

// parseAbout reads the flags of a command about jobs, and its argument, which flags may follow: the
// job that it is about, which --job sets too.
func (a *app) parseAbout(f *pflag.FlagSet, args []string, job *string) error {
	word := ""
	rest, err := flags.Parse(f, args, a.env)
	if err == nil && len(rest) > 0 {
		word = rest[0]
		rest, err = flags.Parse(f, rest[1:], a.env)
	}
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return fmt.Errorf("cannot run %s: unexpected argument %q", f.Name(), rest[0])
	case word != "" && *job != "" && *job != word:
		return fmt.Errorf("cannot run %s: --job %s: the argument is %q", f.Name(), *job, word)
	}
	*job = cmp.Or(word, *job)
	return nil
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
	own := tables.UserName(os.Geteuid())
	host, _ := os.Hostname()
	unknown := func(j status.Job) bool { return j.State == "" }
	switch {
	case slices.ContainsFunc(r.Jobs, unknown):
		return errors.New("a job has not answered")
	case len(r.Jobs) > 0:
		return nil
	case len(r.Silent) > 0:
		return hint.With(silent(r.Silent), "it may be stopped, or this node overloaded")
	case len(r.Names) > 0 && job != "": // without a name they have ended meanwhile
		return hint.With(
			fmt.Errorf("user %s has no job %q on %s", own, job, host),
			"the jobs are "+strings.Join(r.Names, ", "),
		)
	case len(r.Others) > 0:
		other := tables.UserName(r.Others[0])
		return hint.With(
			fmt.Errorf("user %s has no job on %s, but user %s has", own, host, other),
			"only that user can run rdzv "+command+" for it",
		)
	}
	return hint.With(
		fmt.Errorf("user %s has no job on %s", own, host),
		"run rdzv "+command+" on a node of the job, as the user who started it",
	)
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
