package agent

import (
	"slices"

	"rdzv/envmap"
	"rdzv/rdzv/agent/internal/exports"
	"rdzv/rdzv/agent/internal/identity"
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
	p.Identity, p.Open = l.identities().Preview()
	p.Binding = l.numa.Bind(&p.Identity, l.Config.Device, 0, l.Workers)
	environ, _ := envmap.Override(l.Config.Environ, l.exports.Variables)
	p.Env = envmap.ParseEnv(environ)
	p.Changes, err = envmap.TorchChanges(p.Env, p.Identity, l.Config.torchOptions(l.OwnTasks))
	if err != nil {
		return p, err
	}
	p.Changes.Set = append(l.exports.Added(l.env, p.Changes), p.Changes.Set...)
	if p.Identity.NoLibuv && slices.Contains(p.Changes.Set, envmap.KV{Name: "USE_LIBUV", Value: "0"}) {
		torch := l.setup.Program.Torch
		p.NoLibuv = "torch " + torch.Version + " in " + torch.Dir + " may be built without libuv"
	}
	kept := func(name string) bool { return slices.Contains(p.Changes.Kept, name) }
	p.Open = slices.DeleteFunc(p.Open, kept)
	open := func(kv envmap.KV) bool { return slices.Contains(p.Open, kv.Name) }
	p.Changes.Set = slices.DeleteFunc(p.Changes.Set, open)
	return p, nil
}

// Exported are the names of the variables that all workers get from rank 0's agent, as far as this
// agent knows them.
func (l *Local) Exported() []string { return exports.Names(l.exports.Variables) }

// NoMemoryNode is why the workers get no preferred memory node although they are bound to a NUMA
// node; nil if they do, or if they are not to be bound.
func (l *Local) NoMemoryNode() error { return l.numa.NoMemoryNode() }

// identities makes the identities of this agent's workers.
func (l *Local) identities() identity.Maker {
	return identity.Maker{
		Placement: l.Placement, Agents: l.Agents, Elastic: l.layout().Elastic(), Workers: l.Workers,
		Devices: l.Devices, CPUs: l.CPUs, NCCLConfigured: l.setup.NCCL,
		NoLibuv: l.setup.Program.Torch.MayLackLibuv(),
	}
}
