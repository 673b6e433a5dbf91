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

Print the rank of this process, one number, for scripts. Inside of rdzv exec it
is RANK, elsewhere what the launcher gave. No network is used.

    --local                 the rank among those of this node
    --node                  the number of this node
    --size                  how many ranks there are
    --local-size            how many of them are on this node
    --nodes                 how many nodes there are
    --default N             print N where it is not known  RDZV_DEFAULT
    --launcher NAME         believe this launcher (the     RDZV_LAUNCHER
                            one that is found)

Exit status:
    0        printed
    1        not known here
    2        wrong usage
`

// getRank is the long way to the answer: package early has given it already if
// the question was well-formed and has one.
func (a *app) getRank(args []string) int {
	f, asked, byDefault, launcher := getRankFlags()
	rest, _, err := parse(f, args, envmap.Env{"RDZV_LAUNCHER": a.env["RDZV_LAUNCHER"], "RDZV_DEFAULT": a.env["RDZV_DEFAULT"]})
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("cannot run get-rank: unexpected argument %q", rest[0])
	}
	what := early.Rank
	for n, yes := range asked {
		if *yes && what != early.Rank && err == nil {
			err = fmt.Errorf("cannot run get-rank: %s and %s ask for two numbers", min(what, n), max(what, n))
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

// names are the numbers for people.
var names = map[early.Number]string{
	early.Rank: "rank", early.Local: "local rank", early.Node: "node rank",
	early.Size: "number of tasks", early.LocalSize: "number of tasks on this node", early.Nodes: "number of nodes",
}

// unknown says why there is no number, and what to do.
func (a *app) unknown(what early.Number, launcher envmap.Launcher) error {
	p, err := envmap.Detect(a.env, launcher)
	if err != nil {
		return err
	}
	if p.Launcher == envmap.None {
		return hinted{fmt.Errorf("cannot determine the %s: no launcher started this process", names[what]), "--default N prints N then"}
	}
	return hinted{
		fmt.Errorf("cannot determine the %s: %s does not set it", names[what], p.Launcher),
		"the agents agree on it: ask inside of rdzv exec",
	}
}
