package agent

import (
	"slices"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/host"
)

// Preview is what can be known of an agent's first worker before the agents meet.
type Preview struct {
	Identity envmap.Identity // unknown numbers are 0 or 1
	Changes  envmap.Changes  // of the environment, without the variables in Open
	Open     []string        // variables whose values the agents agree on when they meet
	Kept     []string        // settings of the user's that stay, also those that depend on the meeting
	Notes    []string        // what the environment says where the user has set nothing
}

// Preview makes the environment of the first worker as far as it is known.
func (l *Local) Preview() (p Preview, err error) {
	p.Identity, p.Open = l.previewIdentity()
	if p.Changes, err = envmap.TorchChanges(l.env, p.Identity, l.torchOptions()); err != nil {
		return p, err
	}
	p.Changes.Set = slices.DeleteFunc(p.Changes.Set, func(kv envmap.KV) bool {
		return slices.Contains(p.Open, kv.Name)
	})
	p.Kept, p.Notes = l.kept(p)
	return p, nil
}

// kept are the settings of the user's that exec leaves alone; notes is what it says
// where nothing is set.
func (l *Local) kept(p Preview) (names, notes []string) {
	id, o := p.Identity, l.torchOptions()
	id.Interface, id.GPUs, id.Nodes = "-", 1, max(id.Nodes, 2) // so that what depends on them shows
	o.Set = nil
	here, err := envmap.TorchChanges(l.env, id, o)
	blank, errBlank := envmap.TorchChanges(nil, id, o)
	if err != nil || errBlank != nil {
		return nil, nil // it has worked with more
	}
	names = slices.DeleteFunc(here.Kept, func(name string) bool {
		set := slices.ContainsFunc(p.Changes.Set, func(kv envmap.KV) bool { return kv.Name == name }) // by --set
		return set || slices.Contains(p.Open, name)
	})
	slices.Sort(names)
	return names, blank.Notes
}

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
		Launcher: p.Launcher, Visible: l.Devices, NCCLConfigured: host.NCCLConfigured(l.env),
	}
	id.WorldSize = max(id.WorldSize, id.Rank+1)
	id.LocalWorldSize = max(id.LocalWorldSize, id.LocalRank+1)
	id.Nodes = max(id.Nodes, id.NodeRank+1)
	id.Threads = l.CPUs.Threads(l.Workers, id.LocalWorldSize)
	return id, append(open, "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "RDZV_RUN_ID")
}

// firstWorker is the placement of this agent's first worker. If each agent runs several, only the
// agents before it know how many there are before it.
func (l *Local) firstWorker() envmap.Placement {
	p := l.Placement
	if p.Launcher == envmap.None {
		p.Size, p.LocalRank, p.LocalSize, p.Nodes = l.Agents, 0, 1, l.Agents
		if l.Agents == 1 {
			p.Rank, p.NodeRank = 0, 0
		}
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
		RunID: w.Job, Attempt: w.Attempt, Launcher: l.Placement.Launcher,
		Interface: networkInterface(w, ownAddr), NCCLConfigured: host.NCCLConfigured(l.env),
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
	return envmap.TorchOptions{Device: c.Device, Set: c.Set, AsOpenMPI: c.AsOpenMPI, StripLauncher: l.OwnTasks}
}
