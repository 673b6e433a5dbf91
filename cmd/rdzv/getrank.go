package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"rdzv/cmd/rdzv/internal/early"
	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/rdzv/agent"
)

const getRankHelp = `Usage: rdzv get-rank [flags]

    rank=$(rdzv get-rank)
    local_rank=$(rdzv get-rank --local --default 0)

Print the rank of this process, one number, for scripts. Inside a worker of rdzv
exec it is RANK, elsewhere what the launcher provides. It uses no network.

{flags}

Exit status:
    0        printed
    1        unknown here
    2        wrong usage
`

// getRank answers questions that package early left unanswered: those that are malformed or have
// no answer.
func (a *app) getRank(args []string) int {
	f := getRankFlags()
	rest, err := flags.Parse(f, args, a.env)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("cannot run get-rank: unexpected argument %q", rest[0])
	}
	what, conflict := requested(f)
	if err = cmp.Or(err, conflict); err != nil {
		return a.usage(err, "get-rank")
	}
	name, _ := f.GetString("launcher")
	launcher := envmap.Launcher(name)
	n, err := what.Of(a.env, launcher)
	switch {
	case err != nil:
		return a.fail(err)
	case n == envmap.Unknown && !f.Changed("default"):
		return a.fail(unknown(what, a.env, launcher))
	case n == envmap.Unknown:
		n, _ = f.GetInt("default")
	}
	return a.print(strconv.Itoa(n) + "\n")
}

func getRankFlags() *pflag.FlagSet { return flags.Define(flags.New("get-rank"), getRankGroups()) }

// getRankGroups are the flags of get-rank as its help shows them.
func getRankGroups() []flags.Group {
	return []flags.Group{
		{NoEnv: true, Rows: []flags.Row{
			flags.Flag("--local", "the rank on this node", new(bool)),
			flags.Flag("--node", "the rank of this node", new(bool)),
			flags.Flag("--size", "the number of ranks", new(bool)),
			flags.Flag("--local-size", "the number of ranks on this node", new(bool)),
			flags.Flag("--nodes", "the number of nodes", new(bool)),
			flags.Flag("--default N", "print N if it is unknown", new(int)),
		}},
		{Rows: []flags.Row{
			flags.Flag("--launcher NAME", "use this launcher (detected)", new(string)),
		}},
	}
}

// requested is the number that the flags ask for.
func requested(f *pflag.FlagSet) (early.Number, error) {
	what := early.Numbers[0]
	for _, n := range early.Numbers[1:] {
		if asked, _ := f.GetBool(n.Flag[2:]); !asked {
			continue
		}
		if what.Flag != "" {
			return what, fmt.Errorf("cannot run get-rank: %s and %s exclude each other",
				min(what.Flag, n.Flag), max(what.Flag, n.Flag))
		}
		what = n
	}
	return what, nil
}

// unknown is why there is no number, with a hint.
func unknown(what early.Number, env envmap.Env, launcher envmap.Launcher) error {
	p, err := early.Detect(env, launcher)
	if err != nil {
		return err
	}
	if p.Launcher != envmap.None && p.CheckComplete() != nil {
		return p.CheckComplete()
	}
	if p.Launcher == envmap.None {
		err := fmt.Errorf("cannot determine the %s: no launcher started this process", what.Name)
		if p.Unclaimed != "" {
			return hint.With(err, p.Unclaimed+": "+agent.Hint(p.CheckComplete()))
		}
		alone := 0
		if strings.HasPrefix(what.Name, "number") {
			alone = 1
		}
		return hint.With(err, fmt.Sprintf("start it with mpirun, srun or rdzv exec; "+
			"for a process on its own, --default %d prints %[1]d", alone))
	}
	return hint.With(
		fmt.Errorf("cannot determine the %s: %s does not set it", what.Name, p.Launcher),
		"the agents agree on it when they meet: run get-rank inside rdzv exec",
	)
}
