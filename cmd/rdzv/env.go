package main

import (
	"fmt"

	"rdzv/cmd/rdzv/internal/announce"
	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/explain"
	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/options"
	"rdzv/cmd/rdzv/internal/tables"
	"rdzv/envmap"
	"rdzv/rdzv/agent"
)

const envHelp = `Usage: rdzv env [flags] [[--] PROGRAM [ARG]...]

    mpirun -np 2 rdzv env --explain
    eval "$(rdzv env)"

Print the variables that exec would set here for its first worker. It does not
contact other agents: variables that depend on the other agents are left out,
such as MASTER_ADDR and MASTER_PORT, and those that the launcher does not give.
Without PROGRAM, the number of workers and USE_LIBUV are right for one that the
python3 of PATH runs.

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
	json    bool   // as format json
	explain bool
}

func newEnvFlags() *envFlags { return &envFlags{options: options.New(), format: "sh"} }

// groups are the flags as the help shows them.
func (f *envFlags) groups() []flags.Group {
	var rows []flags.Row
	for _, g := range f.options.Groups() {
		rows = append(rows, g.Rows...)
	}
	return []flags.Group{
		flags.Output(&f.json),
		{NoEnv: true, Rows: []flags.Row{
			flags.Flag("--explain", "print the detected launcher, the variables that identified it, the "+
				"source of each value, and which of your variables are kept, replaced or ignored",
				&f.explain),
			flags.Flag("--format sh|json", "for a POSIX shell, or one JSON object (sh)", &f.format),
		}},
		{
			Title: "The flags of exec work here too; those that affect no value have no effect",
			Brief: true, Rows: rows,
		},
	}
}

// printEnv prints the environment that exec would set, or explains it.
func (a *app) printEnv(args []string) int {
	o := newEnvFlags()
	words, err := flags.Parse(o.options.Flags("env", o.groups()), args, a.env)
	var program []string
	if err == nil {
		program, err = a.program("env", words, o.options)
	}
	switch {
	case err != nil:
	case o.format != "sh" && o.format != "json":
		err = fmt.Errorf("cannot run env: --format %q: must be sh or json", o.format)
	default:
		err = o.options.Check(a.env)
	}
	asJSON := o.json || o.format == "json"
	if err != nil {
		return a.usage(err, "env")
	}
	config := o.options.Config(a.process())
	config.Program, config.LogDir = program, ""   // Plan would make that directory
	config.Events = announce.New(a.console).Event // of a file system that does not respond
	local, err := agent.Plan(config)
	if o.explain {
		rows, err := explain.Rows(a.env, local, err)
		if err != nil {
			return a.fail(err)
		}
		return a.show(asJSON, rows, func(console.Destination) string { return tables.Rows(rows) })
	}
	var p agent.Preview
	if err == nil {
		p, err = local.Preview()
	}
	if err != nil {
		return a.fail(insideWorker("env", err,
			"rdzv env --explain describes this worker; --launcher none ignores that it is one"))
	}
	return a.show(asJSON, explain.Values(p.Changes.Set), func(console.Destination) string {
		return envmap.Shell(p.Changes.Set, p.Changes.Unset...)
	})
}
