package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"rdzv/envmap"
	"rdzv/rdzv/agent"
)

// printEnv prints the environment that exec would set, or explains it.
func (a *app) printEnv(args []string) int {
	o := &options{}
	f, format, explain := o.envFlags()
	rest, _, err := parse(f, args, a.env)
	switch {
	case err != nil:
	case len(rest) > 0:
		err = fmt.Errorf("cannot run env: unexpected argument %q", rest[0])
	case *format != "sh" && *format != "json":
		err = fmt.Errorf("cannot run env: --format %q: must be sh or json", *format)
	default:
		err = o.checkShared()
	}
	if err != nil {
		return a.usage(codeUsage, err, "env")
	}
	local, err := agent.Plan(o.config(a, nil, nil, nil))
	if *explain {
		return a.explain(o, local, err, *format == "json" && f.Changed("format"))
	}
	var p agent.Preview
	if err == nil {
		p, err = local.Preview()
	}
	if err != nil {
		return a.fail(codeUnknown, inEnv(err))
	}
	if *format == "json" {
		return a.printJSON(object(p.Changes.Set))
	}
	return a.print(envmap.Shell(p.Changes.Set, p.Changes.Unset...))
}

func (o *options) envFlags() (f *pflag.FlagSet, format *string, explain *bool) {
	f = newFlags("env")
	o.define(f)
	return f, f.String("format", "sh", ""), f.Bool("explain", false, "")
}

// inEnv adds a suggestion to the refusal to run inside a worker.
func inEnv(err error) error {
	var inside *agent.InsideWorkerError
	if !errors.As(err, &inside) {
		return err
	}
	return hinted{
		fmt.Errorf("cannot run env: %w", err),
		"rdzv env --explain describes this worker; --launcher none ignores that it is one",
	}
}

// object is a set of variables as a JSON object.
func object(set []envmap.KV) map[string]string {
	o := make(map[string]string, len(set))
	for _, kv := range set {
		o[kv.Name] = kv.Value
	}
	return o
}
