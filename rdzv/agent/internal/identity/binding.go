package identity

import (
	"io/fs"

	"rdzv/envmap"
	"rdzv/rdzv/agent/internal/host"
)

// NUMA binds the workers of an agent to NUMA nodes of this host. nil binds none.
type NUMA struct {
	nodes    envmap.NUMA
	noMemory error // why the workers cannot get a preferred memory node
}

// ReadNUMA is nil unless the workers are to be bound.
func ReadNUMA(mode envmap.BindMode, root fs.FS) *NUMA {
	if mode != envmap.BindNUMA {
		return nil
	}
	return &NUMA{envmap.ReadNUMA(root), host.CheckMemoryPolicy()}
}

// Bind determines where the i-th worker of an agent with so many is to run, and limits its threads
// to the cores there. nil binds nothing.
func (n *NUMA) Bind(
	id *envmap.Identity, device envmap.DeviceMode, i, workers int,
) (b envmap.Binding) {
	if n == nil {
		return b
	}
	b = n.nodes.Bind(*id, device, i, workers)
	b.Memory = b.Memory && n.noMemory == nil
	id.Threads = b.Threads(id.Threads)
	return b
}

// NoMemoryNode is why the workers get no preferred memory node although they are bound to a NUMA
// node; nil if they do, or if they are not to be bound.
func (n *NUMA) NoMemoryNode() error {
	if n == nil {
		return nil
	}
	return n.noMemory
}
