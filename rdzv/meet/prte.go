package meet

import (
	"net/netip"
	"path"
	"slices"
	"strings"

	"rdzv/internal/procfs"
	"rdzv/rdzv/meet/internal/hosts"
)

// openMPI5 tells the ranks of mpirun and prterun of PRRTE, which begins its jobs' names with its
// own.
func openMPI5(c *Config) bool {
	return !c.byHand() && (c.Launcher == "openmpi5" || c.Launcher == "" && strings.HasPrefix(c.Env["PMIX_NAMESPACE"], "prterun-"))
}

// prte plans for Open MPI 5. It gives its ranks no secret and no list of hosts, but the command
// line of the daemons tells the addresses of mpirun's host, where rank 0 usually is. If that host
// has no ranks, nobody is listed: beacons may help.
func prte(c *Config) (*plan, error) {
	p, err := planByToken(c)
	if err != nil {
		return nil, err
	}
	p.sources = []source{nearby(c, p.ports)}
	if hnp := prteHead(c); len(hnp) > 0 && !c.oneNode() {
		p.sources = append(p.sources, seen(c.Proc, hnp[0].Port(), p.ports), fixed("mpirun's host", 2, addressesOf(hnp), p.ports))
	}
	p.announce = !c.oneNode()
	p.hint = "if mpirun's own host runs no ranks, Open MPI 5 does not name rank 0's host: " +
		"name it with mpirun -x RDZV_STORE=HOST"
	return p, nil
}

// prteHead finds mpirun's daemon on the command line of this host's daemon, which is an ancestor.
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
