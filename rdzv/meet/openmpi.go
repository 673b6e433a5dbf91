package meet

import (
	"fmt"
	"strings"

	"rdzv/rdzv/meet/internal/hosts"
	"rdzv/rdzv/secret"
)

// transports is the variable with mpirun's secret.
const transports = "OMPI_MCA_orte_precondition_transports"

// openMPI4 reports whether mpirun of Open MPI 4 has started this agent. Only mpirun sets these
// variables.
func openMPI4(c *Config) bool {
	return c.launcherMayBe("openmpi4") &&
		(c.Env["OMPI_MCA_orte_hnp_uri"] != "" || c.Env["OMPI_MCA_ess_base_jobid"] != "")
}

// orte is the plan for Open MPI 4, whose mpirun generates 128 random bits per job and passes them
// to its ranks only. Rank 0 is usually on mpirun's host; if that runs no ranks, on the first one of
// the other hosts; with a rankfile or similar options on any host.
func orte(c *Config) (*plan, error) {
	p, err := orteKey(c)
	if err != nil {
		return nil, err
	}
	p.sources = []source{fixed("this host", 0, p.addrs, p.ports)}
	p.announce = !c.oneNode()
	hnp, err := hosts.ParseDaemonURI(c.Env["OMPI_MCA_orte_hnp_uri"])
	if err == nil && !c.oneNode() {
		p.sources = append(p.sources, daemonPeers(c.Proc, hnp[0].Port(), p.ports),
			fixed("mpirun's host", 2, addressesOf(hnp), p.ports))
	}
	nodes, err := hosts.ParseNodeRegex(c.Env["OMPI_MCA_orte_node_regex"])
	if err == nil && !c.oneNode() {
		p.sources = append(p.sources, named(c, append(nodes[1:], nodes[0]), 1, p.ports))
	}
	p.hint = "if the hosts cannot find each other by name or multicast, " +
		"name rank 0's host: mpirun -x RDZV_STORE=HOST"
	return p, nil
}

// orteKey derives the key from mpirun's secret, or from the token if mpirun has none. The variable
// alone does not contain a secret: under srun --mpi=pmix it is derived from the job id.
func orteKey(c *Config) (*plan, error) {
	text := strings.ReplaceAll(c.Env[transports], "-", "")
	if c.Insecure || text == "" {
		return planByToken(c)
	}
	b, err := secret.ParseToken(text)
	if err != nil {
		return nil, fmt.Errorf("cannot use %s as the secret of this job: %w", transports, err)
	}
	// mpirun's job id is not unique, so the job's identity includes the secret.
	k := secret.DeriveKey(b, c.Job+"\x00"+text)
	return planFor(c, &k)
}

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
	if hnp := openMPIHead(c.Proc, c.PID); len(hnp) > 0 && !c.oneNode() {
		p.sources = append(p.sources, daemonPeers(c.Proc, hnp[0].Port(), p.ports),
			fixed("mpirun's host", 2, addressesOf(hnp), p.ports))
	}
	p.announce = !c.oneNode()
	p.hint = "if mpirun's own host runs no ranks, Open MPI 5 does not name rank 0's host: " +
		"name it with mpirun -x RDZV_STORE=HOST"
	return p, nil
}
