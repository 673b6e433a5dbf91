package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"rdzv/cmd/rdzv/internal/early"
	"rdzv/envmap"
)

const getRankHelp = `Usage: rdzv get-rank [flags]

    rank=$(rdzv get-rank)
    local_rank=$(rdzv get-rank --local --default 0)

Print the rank of this process, one number, for scripts. Inside a worker of rdzv
exec it is RANK, elsewhere what the launcher provides. It uses no network.

    --local                 the rank on this node
    --node                  the rank of this node
    --size                  the number of ranks
    --local-size            the number of ranks on this node
    --nodes                 the number of nodes
    --default N             print N if it is unknown       RDZV_DEFAULT
    --launcher NAME         use this launcher (detected)   RDZV_LAUNCHER

Exit status:
    0        printed
    1        unknown here
    2        wrong usage
`

// getRank answers questions that package early left unanswered: those that are malformed or have
// no answer.
func (a *app) getRank(args []string) int {
	f, asked, byDefault, launcher := getRankFlags()
	rest, _, err := parse(f, args, envmap.Env{
		"RDZV_LAUNCHER": a.env["RDZV_LAUNCHER"], "RDZV_DEFAULT": a.env["RDZV_DEFAULT"],
	})
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("cannot run get-rank: unexpected argument %q", rest[0])
	}
	what := early.Rank
	for n, yes := range asked {
		if *yes && what != early.Rank && err == nil {
			err = fmt.Errorf("cannot run get-rank: %s and %s exclude each other", min(what, n), max(what, n))
		}
		if *yes {
			what = n
		}
	}
	if err != nil {
		return a.usage(codeUsage, err, "get-rank")
	}
	if !f.Changed("default") {
		byDefault = nil
	}
	return a.printNumber(what, envmap.Launcher(*launcher), byDefault)
}

func getRankFlags() (f *pflag.FlagSet, asked map[early.Number]*bool, byDefault *int, launcher *string) {
	f, asked = newFlags("get-rank"), map[early.Number]*bool{}
	for _, n := range []early.Number{early.Local, early.Node, early.Size, early.LocalSize, early.Nodes} {
		asked[n] = f.Bool(string(n[2:]), false, "")
	}
	return f, asked, f.Int("default", 0, ""), f.String("launcher", "", "")
}

func (a *app) printNumber(what early.Number, launcher envmap.Launcher, byDefault *int) int {
	n, err := early.Of(what, a.env, launcher)
	if err != nil {
		return a.fail(codeUnknown, err)
	}
	if n == envmap.Unknown && byDefault == nil {
		return a.fail(codeUnknown, a.unknown(what, launcher))
	}
	if n == envmap.Unknown {
		n = *byDefault
	}
	return a.print(strconv.Itoa(n) + "\n")
}

// names are the numbers' names in messages.
var names = map[early.Number]string{
	early.Rank: "rank", early.Local: "local rank", early.Node: "node rank",
	early.Size: "number of tasks", early.LocalSize: "number of tasks on this node",
	early.Nodes: "number of nodes",
}

// unknown is why there is no number, with a hint.
func (a *app) unknown(what early.Number, launcher envmap.Launcher) error {
	p, err := envmap.Detect(a.env, launcher)
	if err != nil {
		return err
	}
	if p.Launcher == envmap.None {
		return hinted{
			fmt.Errorf("cannot determine the %s: no launcher started this process", names[what]),
			"--default N prints N in this case",
		}
	}
	return hinted{
		fmt.Errorf("cannot determine the %s: %s does not set it", names[what], p.Launcher),
		"the agents agree on it when they meet: run get-rank inside rdzv exec",
	}
}
