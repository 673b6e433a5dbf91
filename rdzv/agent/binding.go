package agent

import (
	"fmt"

	"rdzv/envmap"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/wrap"
)

// numa is what an agent that binds its workers knows of this host.
type numa struct {
	envmap.NUMA
	memory error // why the workers cannot get a preferred memory node
}

func (l *Local) readNUMA() {
	if l.Config.Bind == envmap.BindNUMA {
		l.numa = &numa{envmap.ReadNUMA(l.Config.Root), host.CheckMemoryPolicy()}
	}
}

// bind determines where the i-th worker of this agent is to run, and limits its threads to the
// cores there.
func (l *Local) bind(id *envmap.Identity, i int) (b envmap.Binding) {
	if l.numa == nil {
		return b
	}
	b = l.numa.Bind(*id, l.Config.Device, i, l.Workers)
	b.Memory = b.Memory && l.numa.memory == nil
	id.Threads = b.Threads(id.Threads)
	return b
}

// NoMemoryNode is why the workers get no preferred memory node although they are bound to a NUMA
// node; nil if they do, or if they are not to be bound.
func (l *Local) NoMemoryNode() error {
	if l.numa == nil {
		return nil
	}
	return l.numa.memory
}

// noteBinding reports where a worker will run. What was asked for and is not possible is reported
// to everybody for the first node: it is likely to be the same on the others.
func (w *workers) noteBinding(id envmap.Identity, b envmap.Binding) {
	if w.local.numa == nil {
		return
	}
	bound := len(b.Nodes) > 0
	note := fmt.Sprintf("rank %d is bound to %s (%s)", id.Rank, b, b.Why)
	if !bound {
		note = fmt.Sprintf("rank %d is not bound: %s", id.Rank, b.Why)
	}
	w.events.send(EnvironmentNote{Text: note, Verbose: bound || id.NodeRank > 0})
	if err := w.local.NoMemoryNode(); err != nil && id.LocalRank == 0 {
		note := fmt.Sprintf("Config.Bind %s prefers no memory node: %v", w.local.Config.Bind, err)
		w.events.send(EnvironmentNote{Text: note, Verbose: id.NodeRank > 0})
	}
}

// binding is b for package wrap.
func binding(b envmap.Binding) wrap.Binding {
	to := wrap.Binding{CPUs: b.CPUs}
	if b.Memory {
		to.Node = &b.Nodes[0]
	}
	return to
}
