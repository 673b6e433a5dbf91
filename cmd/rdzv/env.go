package main

import (
	"fmt"

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

// printEnv prints the environment that exec would set, or explains it.
func (a *app) printEnv(args []string) int {
	o := newOptions()
	rest, _, err := parse(o.envFlags(), args, a.env)
	switch {
	case err != nil:
	case len(rest) > 0:
		err = fmt.Errorf("cannot run env: unexpected argument %q", rest[0])
	case o.format != "sh" && o.format != "json":
		err = fmt.Errorf("cannot run env: --format %q: must be sh or json", o.format)
	default:
		err = o.check(a.env)
	}
	if err != nil {
		return a.usage(err, "env")
	}
	local, err := agent.Plan(o.config(a))
	if o.explain {
		return a.explain(o, local, err)
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
		return a.print(string(indented(values(p.Changes.Set))))
	}
	return a.print(envmap.Shell(p.Changes.Set, p.Changes.Unset...))
}
