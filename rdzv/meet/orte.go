package meet

import (
	"fmt"
	"strings"

	"rdzv/rdzv/meet/internal/hosts"
	"rdzv/rdzv/secret"
)

const transports = "OMPI_MCA_orte_precondition_transports"

// openMPI4 tells mpirun's own ranks by variables that nothing else sets.
func openMPI4(c *Config) bool {
	return c.from("openmpi4") && (c.Env["OMPI_MCA_orte_hnp_uri"] != "" || c.Env["OMPI_MCA_ess_base_jobid"] != "")
}

// orte plans for Open MPI 4: mpirun makes 128 random bits for each job, and gives them to its ranks
// alone.
func orte(c *Config) (*plan, error) {
	p, err := orteKey(c)
	if err != nil {
		return nil, err
	}
	p.sources = []source{nearby(c, p.ports)}
	if !c.oneNode() {
		p.sources = append(p.sources, orteHosts(c, p.ports)...)
	}
	p.announce = !c.oneNode()
	p.hint = "if the hosts cannot find each other by name or multicast, " +
		"name rank 0's host: mpirun -x RDZV_STORE=HOST"
	return p, nil
}

// orteHosts are the places where rank 0 may be: nearly always mpirun's host; if that has no ranks,
// the first of the other hosts; with a placement by hand any.
func orteHosts(c *Config, ports []int) []source {
	var sources []source
	if hnp, err := hosts.ParseDaemonURI(c.Env["OMPI_MCA_orte_hnp_uri"]); err == nil {
		sources = append(sources, seen(c.Proc, hnp[0].Port(), ports), fixed("mpirun's host", 2, addressesOf(hnp), ports))
	}
	if nodes, err := hosts.ParseNodeRegex(c.Env["OMPI_MCA_orte_node_regex"]); err == nil {
		sources = append(sources, names(c.Resolve, append(nodes[1:], nodes[0]), 1, ports))
	}
	return sources
}

// orteKey makes the key from mpirun's secret. Where mpirun makes none, the token serves. The
// variable alone is none: under srun --mpi=pmix it is made from the job's number.
func orteKey(c *Config) (*plan, error) {
	text := strings.ReplaceAll(c.Env[transports], "-", "")
	if c.Insecure || text == "" {
		return planByToken(c)
	}
	b, err := secret.ParseToken(text)
	if err != nil {
		return nil, fmt.Errorf("cannot use %s as the secret of this job: %w", transports, err)
	}
	k := secret.DeriveKey(b, c.Job+"\x00"+text) // the launcher's number of the job may be that of another one too
	return planFor(c, &k)
}
