// Package identity determines which rank each worker of an agent has, and where it runs.
package identity

import (
	"rdzv/envmap"
	"rdzv/internal/interfaces"
	"rdzv/rdzv"
)

// Maker makes the identities of the workers of an agent.
type Maker struct {
	Placement envmap.Placement // of the agent
	Agents    int              // of the job
	Elastic   bool             // their number may vary
	Workers   int              // of this agent
	Devices   envmap.Devices
	CPUs      envmap.CPUs

	NCCLConfigured bool // NCCL has a configuration file
	NoLibuv        bool // torch is built without libuv
}

// Preview is the first worker's identity before the agents meet, and the variables that depend on
// the other agents.
func (m Maker) Preview() (id envmap.Identity, open []string) {
	known := func(n, instead int, variables ...string) int {
		if n == envmap.Unknown {
			open = append(open, variables...)
			return instead
		}
		return n
	}
	p := m.firstWorker()
	if p.Rank == 0 {
		p.NodeRank = 0 // whatever the launcher's number of this node is
	}
	id = envmap.Identity{
		Rank:           known(p.Rank, 0, "RANK", "ROLE_RANK"),
		WorldSize:      known(p.Size, 1, "WORLD_SIZE", "ROLE_WORLD_SIZE"),
		LocalRank:      known(p.LocalRank, 0, "LOCAL_RANK", "RDZV_DEVICE_INDEX"),
		LocalWorldSize: known(p.LocalSize, 1, "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS"),
		NodeRank:       known(p.NodeRank, 0, "GROUP_RANK", "NODE_RANK"),
		Nodes:          known(p.Nodes, 1, "GROUP_WORLD_SIZE"),
		MasterAddr:     "unknown", NodeAddr: "unknown", RunID: "unknown",
		Launcher: p.Launcher, Tasks: m.tasks(), Visible: m.Devices, GPUs: m.Devices.Count(),
		NCCLConfigured: m.NCCLConfigured, NoLibuv: m.NoLibuv,
	}
	if p.Nodes != 1 {
		id.Interface, id.Nodes = "unknown", max(id.Nodes, 2)
	}
	id.WorldSize = max(id.WorldSize, id.Rank+1)
	id.LocalWorldSize = max(id.LocalWorldSize, id.LocalRank+1)
	id.Nodes = max(id.Nodes, id.NodeRank+1)
	id.Threads = m.CPUs.Threads(m.Workers, id.LocalWorldSize)
	open = append(open, "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "RDZV_RUN_ID")
	if id.Interface != "" {
		open = append(open, "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
	}
	return id, open
}

// firstWorker is the placement of this agent's first worker. If each agent runs several, only the
// agents before it know how many there are before it.
func (m Maker) firstWorker() envmap.Placement {
	p := m.Placement
	if p.Launcher == envmap.None {
		p.Size, p.LocalRank, p.LocalSize, p.Nodes = m.Agents, 0, 1, m.Agents
		if m.Agents == 1 || p.NodeRank == 0 {
			p.Rank, p.NodeRank = 0, 0
		}
	}
	if m.Elastic {
		p.Size, p.Nodes = envmap.Unknown, envmap.Unknown
	}
	p.Size, p.LocalSize = m.workersOf(p.Size), m.workersOf(p.LocalSize)
	if m.Workers > 1 && p.Rank != 0 {
		p.Rank = envmap.Unknown
	}
	if m.Workers > 1 && p.LocalRank != 0 {
		p.LocalRank = envmap.Unknown
	}
	return p
}

// workersOf is the number of workers of so many tasks: other tasks may run other numbers of
// workers than this one.
func (m Maker) workersOf(tasks int) int {
	if m.Workers > 1 && tasks != 1 || tasks == envmap.Unknown {
		return envmap.Unknown
	}
	return tasks * m.Workers
}

// Of is the identity of the agent's i-th worker in the agreed world. addr is the address of this
// node at which workers of other nodes reach it, face its network interface.
func (m Maker) Of(w rdzv.World, i int, addr, face string) envmap.Identity {
	seat := w.Seat
	return envmap.Identity{
		Rank: seat.RankOf(i), WorldSize: w.Size,
		LocalRank: seat.LocalRankOf(i), LocalWorldSize: seat.LocalSize,
		NodeRank: seat.Node, Nodes: w.Nodes, MasterAddr: w.MasterAddr, MasterPort: w.MasterPort,
		RunID: w.Job, Attempt: w.Attempt, Restarts: w.MaxRestarts, Launcher: m.Placement.Launcher,
		Tasks:    m.tasks(),
		NodeAddr: addr, Interface: face,
		NCCLConfigured: m.NCCLConfigured, NoLibuv: m.NoLibuv,
		Threads: m.CPUs.Threads(m.Workers, seat.LocalSize), Visible: m.Devices, GPUs: m.Devices.Count(),
	}
}

// tasks is how many tasks the launcher has started on this node, 0 if that is unknown. Without one
// it is the agent alone.
func (m Maker) tasks() int {
	if m.Placement.Launcher == envmap.None {
		return 1
	}
	return max(m.Placement.LocalSize, 0)
}

// Interface is the network interface with an address of this node; "" for a loopback address.
func Interface(addr string) string {
	if name := interfaces.WithAddr(addr); name != "lo" {
		return name
	}
	return ""
}

// CheckDevices checks whether workers can be given the devices of this node.
func (m Maker) CheckDevices(env envmap.Env, o envmap.TorchOptions) error {
	alone := envmap.Identity{WorldSize: 1, LocalWorldSize: 1, Nodes: 1, Visible: m.Devices}
	_, err := envmap.TorchChanges(env, alone, o)
	return err
}
