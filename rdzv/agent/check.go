package agent

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/node"
	"rdzv/rdzv/check"
)

// Check is what an agent does that checks the nodes of a job instead of running its workers.
type Check struct {
	// Report gets the report on all nodes, on the agent that hosts the store, before the other
	// agents end. It is not called if the job ended before the agents have met.
	Report func(check.Report)
	// Deep also imports torch, and Health is a command of /bin/sh that also has to succeed, on each
	// node and for at most Limit each. Limit is required with them.
	Deep   bool
	Health string
	Limit  time.Duration
}

// checkTime is how long each look at something may take that may not respond.
const checkTime = 2 * time.Second

// checkName is the name of the job of agents that check: it has no other agents.
func (l *Local) checkName(job string) string {
	return "check-" + job[:min(len(job), MaxJob-len("check-"))]
}

// unresponsiveError says that a file system does not respond.
type unresponsiveError struct{ text string }

func (e *unresponsiveError) Error() string { return "cannot start: " + e.text }

// unresponsive is an *[unresponsiveError] if the program or its directory may be in a file system
// that does not respond. exec would wait for it.
func (l *Local) unresponsive() error {
	if l.Config.Check == nil {
		return nil
	}
	paths := []string{"."}
	for _, path := range append([]string{l.Config.Dir}, l.Config.Program...) {
		if strings.Contains(path, "/") {
			paths = append(paths, path)
		}
	}
	paths = append(paths, filepath.SplitList(l.env["PATH"])...)
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	path := host.Unresponsive(ctx, paths)
	if path == "" {
		return nil
	}
	return &unresponsiveError{hungFileSystem(path)}
}

// checkedFacts are what this agent tells about its node, as far as it is known before the agents
// meet. ctx ends what takes long.
func (l *Local) checkedFacts(ctx context.Context) (facts []rdzv.NodeFact) {
	know := func(name, value string) {
		if value != "" {
			facts = append(facts, rdzv.NodeFact{Name: name, Value: value})
		}
	}
	dir, _ := os.Readlink("/proc/self/cwd")
	know("working directory", strings.TrimSuffix(dir, " (deleted)"))
	know("program", l.Path)
	know("interpreter", l.program.Python)
	if why := l.program.Unknown; why != "" {
		for _, name := range []string{"python", "torch"} { // as in facts
			facts = append(facts, rdzv.NodeFact{Name: name, Value: why, Unknown: true})
		}
	}
	if l.program.Certain {
		libraries := l.program.Torch.Libraries(l.Config.Root)
		know("torch built for", libraries.Built)
		know("NCCL package", libraries.NCCL)
	}
	know("CPUs allowed", fmt.Sprint(l.CPUs.Count))
	// One agent looks at the processes, before it starts any that may use GPUs.
	files := node.Files{Root: l.Config.Root, Space: spaceOf, Processes: l.FirstOfNode()}
	limited, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	facts = append(facts, nodeFacts(files.Facts(limited))...)
	return append(facts, l.resolve(ctx)...)
}

func nodeFacts(from []node.Fact) (facts []rdzv.NodeFact) {
	for _, f := range from {
		facts = append(facts, rdzv.NodeFact{
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
func (l *Local) resolve(ctx context.Context) []rdzv.NodeFact {
	if l.Agents == 1 || l.layout().OnOneHost() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupHost(ctx, host.Name())
	fact := rdzv.NodeFact{Name: "host name", Value: "resolves"}
	isLoopback := func(a string) bool { return net.ParseIP(a).IsLoopback() }
	switch {
	case err != nil:
		fact.Value = "does not resolve"
	case slices.ContainsFunc(addrs, isLoopback):
		fact.Value = "resolves to " + strings.Join(addrs, ", ")
		fact.Warning = "the name of the host resolves to " + strings.Join(addrs, ", ") +
			" there: programs that give it to other nodes do not work"
		fact.Hint = "rdzv does not use it; for other programs change the line in /etc/hosts"
	case !slices.ContainsFunc(addrs, func(a string) bool { return host.InterfaceOf(a) != "" }):
		fact.Value = "resolves to " + strings.Join(addrs, ", ")
		fact.Warning = "the name of the host resolves to " + strings.Join(addrs, ", ") +
			", which is no address of the host"
		fact.Hint = "rdzv does not use it; for other programs correct /etc/hosts or the DNS"
	}
	return []rdzv.NodeFact{fact}
}

// networkFacts are how this agent is connected to the store.
func (m *membership) networkFacts() []rdzv.NodeFact {
	if m.local.Config.Check == nil || m.conn.alone() {
		return nil
	}
	addr := m.address()
	name := host.InterfaceOf(addr)
	reason := "leads to the store"
	if len(m.local.Config.Networks) > 0 {
		reason += ", allowed by Config.Networks " + strings.Join(m.local.Config.Networks, ",")
	}
	facts := []rdzv.NodeFact{{Name: "address", Value: addr, Own: true}}
	if name != "" {
		facts = append(facts, rdzv.NodeFact{Name: "interface", Value: name + " (" + reason + ")"})
	}
	files := node.Files{Root: m.local.Config.Root}
	if mtu := files.MTU(name); mtu.Value != "" {
		facts = append(facts, nodeFacts([]node.Fact{mtu})...)
	}
	return facts
}

// address is that of this node on its way to the store.
func (m *membership) address() string {
	if m.conn.hosting() {
		return m.conn.meeting.Addr.Addr().String()
	}
	return m.conn.addr
}

// checking is what the leader does for agents that check; nil for others.
func (c *connection) checking() *rdzv.CheckConfig {
	if c.local.Config.Check == nil {
		return nil
	}
	return &rdzv.CheckConfig{
		Gathered: func(members []rdzv.Member) []rdzv.NodeProblem {
			c.gathered.Store(&members)
			return check.Disconnected(members)
		},
		Peers: check.Peers,
	}
}

// reportCheck reports on all nodes, on the agent whose leader has gathered their facts.
func (m *membership) reportCheck(v *rdzv.Verdict) {
	c := m.local.Config.Check
	if members := m.conn.gathered.Load(); c != nil && members != nil {
		agents := m.local.Agents
		if m.local.layout().Elastic() {
			agents = max(m.local.Config.MinNodes, len(*members))
		}
		r := check.Of(m.local.Job, agents, *members)
		r.AddProblems(v)
		c.Report(r)
	}
}
