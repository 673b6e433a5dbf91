package agent

import (
	"slices"
	"strings"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/host"
)

// Preview is what can be known of an agent's first worker before the agents meet.
type Preview struct {
	Identity envmap.Identity // unknown numbers are 0 or 1
	Changes  envmap.Changes  // of the environment; Set is without the variables in Open
	Open     []string        // variables whose values the agents agree on when they meet
	NoLibuv  string          // why USE_LIBUV is set to 0; "" if it is not
	Env      envmap.Env      // of this process, with exported variables
	Binding  envmap.Binding  // valid unless LOCAL_RANK or LOCAL_WORLD_SIZE is in Open
}

// Preview makes the environment of the first worker as far as it is known.
func (l *Local) Preview() (p Preview, err error) {
	p.Identity, p.Open = l.previewIdentity()
	p.Binding = l.bind(&p.Identity, 0)
	environ, _ := envmap.Override(l.Config.Environ, l.exports.variables)
	p.Env = envmap.ParseEnv(environ)
	if p.Changes, err = envmap.TorchChanges(p.Env, p.Identity, l.torchOptions()); err != nil {
		return p, err
	}
	p.Changes.Set = append(l.addedExports(p.Changes), p.Changes.Set...)
	if p.Identity.NoLibuv && slices.Contains(p.Changes.Set, envmap.KV{Name: "USE_LIBUV", Value: "0"}) {
		torch := l.program.Torch
		p.NoLibuv = "torch " + torch.Version + " in " + torch.Dir + " may be built without libuv"
	}
	kept := func(name string) bool { return slices.Contains(p.Changes.Kept, name) }
	p.Open = slices.DeleteFunc(p.Open, kept)
	open := func(kv envmap.KV) bool { return slices.Contains(p.Open, kv.Name) }
	p.Changes.Set = slices.DeleteFunc(p.Changes.Set, open)
	return p, nil
}

// addedExports are the exported variables that this process has not, or not with these values, and
// that nothing of changes sets.
func (l *Local) addedExports(changes envmap.Changes) (added []envmap.KV) {
	set := func(name string) bool {
		return slices.ContainsFunc(changes.Set, func(kv envmap.KV) bool { return kv.Name == name })
	}
	for _, entry := range l.exports.variables {
		name, value, _ := strings.Cut(entry, "=")
		if own, exists := l.env[name]; !set(name) && (!exists || own != value) {
			added = append(added, envmap.KV{Name: name, Value: value})
		}
	}
	return added
}

// Exported are the names of the variables that all workers get from rank 0's agent, as far as this
// agent knows them.
func (l *Local) Exported() []string { return namesOf(l.exports.variables) }

// previewIdentity is the first worker's identity, and the variables that depend on the other
// agents.
func (l *Local) previewIdentity() (id envmap.Identity, open []string) {
	known := func(n, instead int, variables ...string) int {
		if n == envmap.Unknown {
			open = append(open, variables...)
			return instead
		}
		return n
	}
	p := l.firstWorker()
	id = envmap.Identity{
		Rank:           known(p.Rank, 0, "RANK", "ROLE_RANK"),
		WorldSize:      known(p.Size, 1, "WORLD_SIZE", "ROLE_WORLD_SIZE"),
		LocalRank:      known(p.LocalRank, 0, "LOCAL_RANK", "RDZV_DEVICE_INDEX"),
		LocalWorldSize: known(p.LocalSize, 1, "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS"),
		NodeRank:       known(p.NodeRank, 0, "GROUP_RANK", "NODE_RANK"),
		Nodes:          known(p.Nodes, 1, "GROUP_WORLD_SIZE"),
		MasterAddr:     "unknown", RunID: "unknown",
		Launcher: p.Launcher, Visible: l.Devices, GPUs: l.Devices.Count(),
		NCCLConfigured: l.nccl, NoLibuv: l.program.Torch.MayLackLibuv(),
	}
	if p.Nodes != 1 {
		id.Interface, id.Nodes = "unknown", max(id.Nodes, 2)
	}
	id.WorldSize = max(id.WorldSize, id.Rank+1)
	id.LocalWorldSize = max(id.LocalWorldSize, id.LocalRank+1)
	id.Nodes = max(id.Nodes, id.NodeRank+1)
	id.Threads = l.CPUs.Threads(l.Workers, id.LocalWorldSize)
	open = append(open, "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "RDZV_RUN_ID")
	if id.Interface != "" {
		open = append(open, "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
	}
	return id, open
}

// firstWorker is the placement of this agent's first worker. If each agent runs several, only the
// agents before it know how many there are before it.
func (l *Local) firstWorker() envmap.Placement {
	p := l.Placement
	if p.Launcher == envmap.None {
		p.Size, p.LocalRank, p.LocalSize, p.Nodes = l.Agents, 0, 1, l.Agents
		if l.Agents == 1 || p.NodeRank == 0 {
			p.Rank, p.NodeRank = 0, 0
		}
	}
	if l.elastic() {
		p.Size, p.Nodes = envmap.Unknown, envmap.Unknown
	}
	p.Size, p.LocalSize = l.workersOf(p.Size), l.workersOf(p.LocalSize)
	if l.Workers > 1 && p.Rank != 0 {
		p.Rank = envmap.Unknown
	}
	if l.Workers > 1 && p.LocalRank != 0 {
		p.LocalRank = envmap.Unknown
	}
	return p
}

// workersOf is the number of workers of so many tasks: other tasks may run other numbers of
// workers than this one.
func (l *Local) workersOf(tasks int) int {
	if l.Workers > 1 && tasks != 1 || tasks == envmap.Unknown {
		return envmap.Unknown
	}
	return tasks * l.Workers
}

// identity is the identity of the agent's i-th worker in the agreed world. ownAddr is this node's
// address on its connection to the store.
func (l *Local) identity(w rdzv.World, i int, ownAddr string) envmap.Identity {
	seat := w.Seat
	return envmap.Identity{
		Rank: seat.Rank + i, WorldSize: w.Size,
		LocalRank: seat.LocalRank + i, LocalWorldSize: seat.LocalSize,
		NodeRank: seat.Node, Nodes: w.Nodes, MasterAddr: w.MasterAddr, MasterPort: w.MasterPort,
		RunID: w.Job, Attempt: w.Attempt, Restarts: w.MaxRestarts, Launcher: l.Placement.Launcher,
		Interface: networkInterface(w, ownAddr), NCCLConfigured: l.nccl,
		NoLibuv: l.program.Torch.MayLackLibuv(),
		Threads: l.CPUs.Threads(l.Workers, seat.LocalSize), Visible: l.Devices, GPUs: l.Devices.Count(),
	}
}

// networkInterface is the interface that leads from this node to MASTER_ADDR, the same for all
// agents of a node whichever way each came to the store; "" if all are on one node.
func networkInterface(w rdzv.World, ownAddr string) string {
	if w.Nodes == 1 {
		return ""
	}
	if own := host.RouteTo(w.MasterAddr); own != "" {
		ownAddr = own
	}
	if name := host.InterfaceOf(ownAddr); name != "lo" {
		return name
	}
	return ""
}

func (l *Local) torchOptions() envmap.TorchOptions {
	c := l.Config
	return envmap.TorchOptions{Device: c.Device, Set: c.Set, AsOpenMPI: c.AsOpenMPI,
		StripLauncher: l.OwnTasks}
}
