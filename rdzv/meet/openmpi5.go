package meet

import (
	"net/netip"
	"path"
	"slices"
	"strings"

	"rdzv/internal/procfs"
	"rdzv/rdzv/meet/internal/hosts"
)

// openMPI5 reports whether mpirun of Open MPI 5 or prterun has started this agent. The names of its
// jobs start with the program's name.
func openMPI5(c *Config) bool {
	if c.Launcher == "" {
		return c.hasRank() && strings.HasPrefix(c.Env["PMIX_NAMESPACE"], "prterun-")
	}
	return c.hasRank() && c.Launcher == "openmpi5"
}

// prte is the plan for Open MPI 5. It passes neither a secret nor a list of hosts to its ranks, but
// the command line of its daemon contains the addresses of mpirun's host, where rank 0 usually is.
// If that host runs no ranks, only multicast remains.
func prte(c *Config) (*plan, error) {
	p, err := planByToken(c)
	if err != nil {
		return nil, err
	}
	p.sources = []source{fixed("this host", 0, p.addrs, p.ports)}
	if hnp := prteHead(c); len(hnp) > 0 && !c.oneNode() {
		p.sources = append(p.sources, daemonPeers(c.Proc, hnp[0].Port(), p.ports),
			fixed("mpirun's host", 2, addressesOf(hnp), p.ports))
	}
	p.announce = !c.oneNode()
	p.hint = "if mpirun's own host runs no ranks, Open MPI 5 does not name rank 0's host: " +
		"name it with Config.Store HOST"
	return p, nil
}

// prteHead returns the addresses of mpirun's daemon from the command line of this host's daemon,
// which is an ancestor of this process; nil if they are not found.
func prteHead(c *Config) []netip.AddrPort {
	if c.Proc == nil {
		return nil
	}
	for _, p := range procfs.Ancestors(c.Proc, c.PID) {
		args := procfs.Arguments(c.Proc, p.PID)
		if len(args) == 0 || !slices.Contains([]string{"prted", "prte"}, path.Base(args[0])) {
			continue
		}
		if i := slices.Index(args, "prte_hnp_uri"); i >= 0 && i+1 < len(args) {
			hnp, _ := hosts.ParseDaemonURI(args[i+1])
			return hnp
		}
	}
	return nil
}
