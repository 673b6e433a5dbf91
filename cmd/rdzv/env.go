package main

import (
	"fmt"

	"rdzv/cmd/rdzv/internal/explain"
	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/options"
	"rdzv/cmd/rdzv/internal/tables"
	"rdzv/envmap"
	"rdzv/rdzv/agent"
)

const envHelp = `Usage: rdzv env [flags]

    mpirun -np 2 rdzv env --explain
    eval "$(rdzv env)"

Print the variables that exec would set here for its first worker. It does not
contact other agents: variables that depend on the other agents are left out,
such as MASTER_ADDR and MASTER_PORT, and those that the launcher does not give.
USE_LIBUV is right for a program that the python3 of PATH runs.

{flags}

Exit status:
    0        printed
    1        the placement of this process cannot be determined
    2        wrong usage
`

// envFlags are the flags of env.
type envFlags struct {
	options *options.Options
	format  string // sh or json
	explain bool
}

func newEnvFlags() *envFlags { return &envFlags{options: options.New(), format: "sh"} }

// groups are the flags as the help shows them.
func (f *envFlags) groups() []flags.Group {
	return []flags.Group{
		{Rows: []flags.Row{
			flags.Flag("--explain", "print the detected launcher, the variables that identified it, the "+
				"source of each value, and which of your variables are kept, replaced or ignored",
				&f.explain),
			flags.Flag("--format sh|json", "for a POSIX shell, or one JSON object (sh)", &f.format),
		}},
		{
			Title: "The flags of exec that affect values work here too", Brief: true,
			Rows: f.options.OfEnvironment(),
		},
	}
}

// printEnv prints the environment that exec would set, or explains it.
func (a *app) printEnv(args []string) int {
	o := newEnvFlags()
	rest, err := flags.Parse(o.options.Flags("env", o.groups()), args, a.env)
	switch {
	case err != nil:
	case len(rest) > 0:
		err = fmt.Errorf("cannot run env: unexpected argument %q", rest[0])
	case o.format != "sh" && o.format != "json":
		err = fmt.Errorf("cannot run env: --format %q: must be sh or json", o.format)
	default:
		err = o.options.Check(a.env)
	}
	if err != nil {
		return a.usage(err, "env")
	}
	local, err := agent.Plan(o.options.Config(a.process()))
	if o.explain {
		rows, err := explain.Rows(a.env, local, err)
		switch {
		case err != nil:
			return a.fail(err)
		case o.format == "json":
			return a.print(string(tables.JSON(rows)))
		}
		return a.print(tables.Rows(rows))
	}
	var p agent.Preview
	if err == nil {
		p, err = local.Preview()
	}
	if err != nil {
		return a.fail(insideWorker("env", err,
			"rdzv env --explain describes this worker; --launcher none ignores that it is one"))
	}
	if o.format == "json" {
		return a.print(string(tables.JSON(explain.Values(p.Changes.Set))))
	}
	return a.print(envmap.Shell(p.Changes.Set, p.Changes.Unset...))
}
