package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"rdzv/envmap"
)

// printEnv prints the environment that exec would set, or explains it.
func (a *app) printEnv(args []string) int {
	j := &job{options: &options{}}
	f, format, explain := j.envFlags()
	rest, _, err := parse(f, args, a.env)
	switch {
	case err != nil:
	case len(rest) > 0:
		err = fmt.Errorf("cannot run env: unexpected argument %q", rest[0])
	case *format != "sh" && *format != "json":
		err = fmt.Errorf("cannot run env: --format %q: must be sh or json", *format)
	default:
		err = j.checkShared()
	}
	if err != nil {
		return a.say.usage(codeUsage, err, "env")
	}
	if *explain {
		return a.explain(j, *format == "json" && f.Changed("format"))
	}
	p, err := a.preview(j)
	if err != nil {
		return a.say.fail(codeUnknown, err)
	}
	if *format == "json" {
		return a.print(asJSON(object(p.changes.Set)))
	}
	return a.print(envmap.Shell(p.changes.Set, p.changes.Unset...))
}

func (o *options) envFlags() (f *pflag.FlagSet, format *string, explain *bool) {
	f = newFlags("env")
	o.define(f)
	return f, f.String("format", "sh", ""), f.Bool("explain", false, "")
}

// preview is what can be known of the first worker before the agents meet.
type preview struct {
	id      envmap.Identity // with numbers that are not known standing as 0 or 1
	changes envmap.Changes  // without what is not known
	open    []string        // the variables that the agents agree on when they meet
}

// preview places this process and makes the environment of its first worker.
func (a *app) preview(j *job) (p preview, err error) {
	if already := insideWorker(a.env); already != "" && j.launcher == "" {
		return p, advice{errors.New("cannot run env: " + already), "rdzv env --explain tells of it; --launcher none looks past it"}
	}
	if j.place, err = envmap.Detect(a.env, envmap.Launcher(j.launcher)); err != nil {
		return p, err
	}
	j.see(a.env)
	if err := j.count(); err != nil {
		return p, err
	}
	p.id, p.open = j.identity()
	p.id.NCCLConfigured = ncclConfigured(a.env)
	p.changes, err = envmap.TorchChanges(a.env, p.id, j.torchOptions())
	p.changes.Set = slices.DeleteFunc(p.changes.Set, func(kv envmap.KV) bool { return slices.Contains(p.open, kv.Name) })
	return p, err
}

func (j *job) torchOptions() envmap.TorchOptions {
	return envmap.TorchOptions{Device: envmap.DeviceMode(j.device), Set: j.set, AsOpenMPI: j.as == "openmpi", StripLauncher: j.ownTasks()}
}

// identity is the first worker's, and the variables of it that are known only
// when the agents have met.
func (j *job) identity() (id envmap.Identity, open []string) {
	known := func(n, instead int, variables ...string) int {
		if n == envmap.Unknown {
			open = append(open, variables...)
			return instead
		}
		return n
	}
	p := j.workerPlace()
	id = envmap.Identity{
		Rank: known(p.Rank, 0, "RANK", "ROLE_RANK"), WorldSize: known(p.Size, 1, "WORLD_SIZE", "ROLE_WORLD_SIZE"),
		LocalRank:      known(p.LocalRank, 0, "LOCAL_RANK", "RDZV_DEVICE_INDEX"),
		LocalWorldSize: known(p.LocalSize, 1, "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS"),
		NodeRank:       known(p.NodeRank, 0, "GROUP_RANK", "NODE_RANK"), Nodes: known(p.Nodes, 1, "GROUP_WORLD_SIZE"),
		Launcher: p.Launcher, Visible: j.devices, MasterAddr: "unknown", RunID: "unknown",
	}
	id.WorldSize, id.LocalWorldSize = max(id.WorldSize, id.Rank+1), max(id.LocalWorldSize, id.LocalRank+1)
	id.Nodes = max(id.Nodes, id.NodeRank+1)
	id.Threads = j.cpus.Threads(j.slots, id.LocalWorldSize)
	return id, append(open, "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "RDZV_RUN_ID")
}

// workerPlace is the placement of this agent's first worker. Where each agent runs
// several, how many those before it run is theirs to say.
func (j *job) workerPlace() envmap.Placement {
	p := j.place
	if p.Launcher == envmap.None {
		p.Size, p.LocalRank, p.LocalSize, p.Nodes = j.agents, 0, 1, j.agents
		if j.agents == 1 {
			p.Rank, p.NodeRank = 0, 0
		}
	}
	p.Size, p.LocalSize = times(p.Size, j.slots), times(p.LocalSize, j.slots)
	if j.slots > 1 && p.Rank != 0 {
		p.Rank = envmap.Unknown
	}
	if j.slots > 1 && p.LocalRank != 0 {
		p.LocalRank = envmap.Unknown
	}
	return p
}

// times is the number of workers of so many tasks: one task has as many as this
// one, more may have others.
func times(tasks, slots int) int {
	if slots > 1 && tasks != 1 {
		return envmap.Unknown
	}
	if tasks == envmap.Unknown {
		return tasks
	}
	return tasks * slots
}

// object is what a set of variables is in JSON.
func object(set []envmap.KV) map[string]string {
	o := make(map[string]string, len(set))
	for _, kv := range set {
		o[kv.Name] = kv.Value
	}
	return o
}

// asJSON is one value on lines of its own, names in the order of the alphabet.
func asJSON(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(errors.Join(errors.New("rdzv: strings that cannot be encoded"), err)) // cannot happen
	}
	return string(b) + "\n"
}
