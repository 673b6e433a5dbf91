package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"rdzv/envmap"
)

const envHelp = `Usage: rdzv env [flags]

Print what exec would set here for its first worker, without meeting anybody.
What the agents agree on only when they meet is left out: MASTER_ADDR and
MASTER_PORT, and what the launcher does not tell.

    --format sh|json  as commands for a POSIX shell, or as one object   RDZV_FORMAT
    --explain         which launcher was recognised, by which variables, what
                      each value was taken from, and what was ignored

The flags of exec that change a value are understood: --launcher,
--nproc-per-node, --device, --set, --as.

Exit status: 0; 1 the launcher cannot be made out; 2 wrong usage.
`

// printEnv prints the environment that exec would set, or explains it.
func (a *app) printEnv(args []string) int {
	j := &job{options: &options{}}
	f := newFlags("env")
	j.define(f)
	format := f.String("format", "sh", "")
	explain := f.Bool("explain", false, "")
	rest, _, err := parse(f, args, a.env)
	switch {
	case err != nil:
	case len(rest) > 0:
		err = fmt.Errorf("cannot run env: unexpected argument %q", rest[0])
	case *format != "sh" && *format != "json":
		err = fmt.Errorf("cannot run env: --format %q: must be sh or json", *format)
	}
	if err != nil {
		return a.say.usage(codeUsage, err, "env")
	}
	if j.place, err = envmap.Detect(a.env, envmap.Launcher(j.launcher)); err != nil {
		return a.say.fail(codeUnknown, err)
	}
	if *explain {
		return a.print(explanation(j.place))
	}
	changes, err := a.changes(j)
	if err != nil {
		return a.say.fail(codeUnknown, err)
	}
	if *format == "json" {
		return a.print(asJSON(changes.Set))
	}
	return a.print(envmap.Shell(changes.Set, changes.Unset...))
}

// agreed are the variables that the agents agree on when they meet.
var agreed = []string{"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "RDZV_RUN_ID"}

// changes is the environment of the first worker as far as it is known before
// the agents meet.
func (a *app) changes(j *job) (envmap.Changes, error) {
	j.see(a.env)
	if err := j.count(); err != nil {
		return envmap.Changes{}, err
	}
	id, unknown := j.identity()
	id.NCCLConfigured = ncclConfigured(a.env)
	changes, err := envmap.TorchChanges(a.env, id, envmap.TorchOptions{
		Device: envmap.DeviceMode(j.device), Set: j.set, AsOpenMPI: j.as == "openmpi", OwnTasks: j.ownTasks(),
	})
	if err != nil {
		return changes, err
	}
	unknown = append(unknown, agreed...)
	changes.Set = slices.DeleteFunc(changes.Set, func(kv envmap.KV) bool { return slices.Contains(unknown, kv.Name) })
	return changes, nil
}

// identity is the first worker's, with a number that is not known yet standing
// as 0 or 1, and the variables that rest on such numbers.
func (j *job) identity() (id envmap.Identity, unknown []string) {
	p := j.place
	if p.Launcher == envmap.None {
		p.Rank, p.Size, p.LocalRank, p.LocalSize, p.NodeRank, p.Nodes = 0, j.agents, 0, 1, 0, j.agents
	}
	known := func(n, instead int, variables ...string) int {
		if n == envmap.Unknown {
			unknown = append(unknown, variables...)
			return instead
		}
		return n
	}
	id = envmap.Identity{
		Rank: known(p.Rank, 0, "RANK", "ROLE_RANK") * j.slots, WorldSize: known(p.Size, 1, "WORLD_SIZE", "ROLE_WORLD_SIZE") * j.slots,
		LocalRank:      known(p.LocalRank, 0, "LOCAL_RANK", "RDZV_DEVICE_INDEX") * j.slots,
		LocalWorldSize: known(p.LocalSize, 1, "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS") * j.slots,
		NodeRank:       known(p.NodeRank, 0, "GROUP_RANK", "NODE_RANK"), Nodes: known(p.Nodes, 1, "GROUP_WORLD_SIZE"),
		Launcher: p.Launcher, Visible: j.devices, MasterAddr: "unknown", RunID: "unknown",
	}
	if p.LocalSize != envmap.Unknown {
		id.Threads = j.cpus.Threads(j.slots, id.LocalWorldSize)
	}
	return id, unknown
}

// explanation is the table of --explain.
func explanation(p envmap.Placement) string {
	var b strings.Builder
	for _, row := range p.Explain() {
		line := fmt.Sprintf("%-11s %-10s", row.What, row.Value)
		if row.From != "" {
			line += " from " + row.From
		}
		if row.Note != "" {
			line += " (" + row.Note + ")"
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// asJSON is one object, its names in the order of the alphabet.
func asJSON(set []envmap.KV) string {
	object := map[string]string{}
	for _, kv := range set {
		object[kv.Name] = kv.Value
	}
	b, err := json.MarshalIndent(object, "", "  ")
	if err != nil {
		panic(errors.Join(errors.New("rdzv: strings that cannot be encoded"), err)) // cannot happen
	}
	return string(b) + "\n"
}
