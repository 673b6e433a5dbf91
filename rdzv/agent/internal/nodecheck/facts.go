package nodecheck

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"rdzv/internal/interfaces"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/ifname"
	"rdzv/rdzv/agent/internal/node"
	"rdzv/rdzv/check"
)

// facts returns the facts about this node; Network has those about its connection to the store. ctx
// ends what takes long.
func (n Node) facts(ctx context.Context) (facts []check.Fact) {
	know := func(name, value string) {
		if value != "" {
			facts = append(facts, check.Fact{Name: name, Value: value})
		}
	}
	dir, _ := os.Readlink("/proc/self/cwd")
	know("working directory", cmp.Or(n.Setup.WorkerDir(), strings.TrimSuffix(dir, " (deleted)")))
	know("program", n.Setup.Path)
	interpreter := n.Setup.Program.Python
	if file, why := n.Setup.ChosenPython(); file != "" {
		interpreter += " (" + why + ")"
	}
	know("interpreter", interpreter)
	unknown := func(name, why string) { // as in facts
		if why != "" {
			facts = append(facts, check.Fact{Name: name, Value: why, Unknown: true})
		}
	}
	unknown("python", n.Setup.Program.Unknown)
	unknown("torch", cmp.Or(n.Setup.Program.Unknown, n.Setup.Program.Torch.Unknown))
	know("CPUs allowed", fmt.Sprint(n.CPUs))
	// One agent looks at the processes, before it starts any that may use GPUs.
	files := node.Files{Root: n.Setup.Root, Space: spaceOf, Processes: n.First,
		OpenFiles: openFiles(ctx)}
	limited, cancel := context.WithTimeout(ctx, LookTime)
	defer cancel()
	facts = append(facts, nodeFacts(files.Facts(limited))...)
	facts = append(facts, n.socketNames()...)
	return append(facts, n.resolve(ctx)...)
}

// openFiles is the soft limit of open files of the workers; 0 if it is not known. Go raises that of
// this process when it begins, and gives the former one to the programs that it starts.
func openFiles(ctx context.Context) uint64 {
	out, _ := exec.CommandContext(ctx, "/bin/sh", "-c", "ulimit -Sn").Output()
	n, _ := strconv.ParseUint(strings.TrimSpace(string(out)), 10, 64)
	return n
}

// socketNames are the variables of a worker that choose network interfaces, if their values cannot
// be right.
func (n Node) socketNames() (facts []check.Fact) {
	for _, f := range ifname.Faults(n.Environ, n.Networks) {
		facts = append(facts, check.Fact{
			Name: f.Variable, Value: f.Value, Warning: f.Text, Hint: f.Hint,
		})
	}
	return facts
}

func nodeFacts(from []node.Fact) (facts []check.Fact) {
	for _, f := range from {
		facts = append(facts, check.Fact{
			Name: f.Name, Value: f.Value, Warning: f.Warning, Hint: f.Hint,
		})
	}
	return facts
}

// spaceOf is the size of the file system with a directory.
func spaceOf(dir string) (node.Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return node.Space{}, err
	}
	unit := uint64(s.Bsize)
	return node.Space{Total: s.Blocks * unit, Free: s.Bavail * unit}, nil
}

// resolve tells whether the host name leads to this node.
func (n Node) resolve(ctx context.Context) []check.Fact {
	if n.OneHost {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, LookTime)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupHost(ctx, host.Name())
	fact := check.Fact{Name: "host name", Value: "resolves"}
	isLoopback := func(a string) bool { return net.ParseIP(a).IsLoopback() }
	switch {
	case err != nil:
		fact.Value = "does not resolve"
	case slices.ContainsFunc(addrs, isLoopback):
		fact.Value = "resolves to " + strings.Join(addrs, ", ")
		fact.Warning = "the name of the host resolves to " + strings.Join(addrs, ", ") +
			" there: programs that give it to other nodes do not work"
		fact.Hint = "rdzv does not use it; for other programs change the line in /etc/hosts"
	case !slices.ContainsFunc(addrs, func(a string) bool { return interfaces.WithAddr(a) != "" }):
		fact.Value = "resolves to " + strings.Join(addrs, ", ")
		fact.Warning = "the name of the host resolves to " + strings.Join(addrs, ", ") +
			", which is no address of the host"
		fact.Hint = "rdzv does not use it; for other programs correct /etc/hosts or the DNS"
	}
	return []check.Fact{fact}
}

// Network is the address of this node for the others, and why it is this one. reached is that from
// which the agent is connected to the store if it is another one; otherwise "".
func Network(addr, reached string, networks []string, root fs.FS) []check.Fact {
	name := interfaces.WithAddr(addr)
	var reasons []string
	if reached == "" {
		reasons = append(reasons, "used to reach the other nodes")
	}
	if len(networks) > 0 && !net.ParseIP(addr).IsLoopback() {
		reasons = append(reasons, "allowed by --net "+strings.Join(networks, ","))
	}
	if reached != "" {
		reasons = append(reasons, interfaces.WithAddr(reached)+" is used to reach the store")
	}
	reason := strings.Join(reasons, ", ")
	facts := []check.Fact{{Name: "address", Value: addr, Own: true}}
	if name != "" {
		facts = append(facts, check.Fact{Name: "interface", Value: name + " (" + reason + ")"})
	}
	files := node.Files{Root: root}
	if mtu := files.MTU(name); mtu.Value != "" {
		facts = append(facts, nodeFacts([]node.Fact{mtu})...)
	}
	return facts
}
