package meet

import (
	"fmt"
	"strings"

	"rdzv/rdzv/meet/internal/hosts"
	"rdzv/rdzv/secret"
)

const transports = "OMPI_MCA_orte_precondition_transports"

// openMPI4 tells mpirun's own ranks by variables that nothing else sets.
func (s *session) openMPI4() bool {
	return s.from("openmpi4") && (s.env("OMPI_MCA_orte_hnp_uri") != "" || s.env("OMPI_MCA_ess_base_jobid") != "")
}

// orte plans for Open MPI 4: mpirun makes 128 random bits for each job, and gives them to its ranks alone.
func (s *session) orte() (*plan, error) {
	p, err := s.orteKey()
	if err != nil {
		return nil, err
	}
	p.sources = []source{s.nearby(p.ports)}
	if !s.oneNode() {
		p.sources = append(p.sources, s.orteHosts(p.ports)...)
	}
	s.beside(p)
	p.hint = "where hosts cannot find each other by name or multicast, name rank 0's host: mpirun -x RDZV_STORE=HOST"
	return p, nil
}

// orteHosts are the places where rank 0 may be: nearly always mpirun's host; if that has no ranks, the first of the other hosts; with a
// placement by hand any.
func (s *session) orteHosts(ports []int) []source {
	var sources []source
	if hnp, err := hosts.ParseDaemonURI(s.env("OMPI_MCA_orte_hnp_uri")); err == nil {
		sources = append(sources, s.seen(hnp.Port(), ports), fixed("mpirun's host", 2, hnp.IPs(), ports))
	}
	if nodes, err := hosts.ParseNodeRegex(s.env("OMPI_MCA_orte_node_regex")); err == nil {
		sources = append(sources, s.names(append(nodes[1:], nodes[0]), 1, ports))
	}
	return sources
}

// orteKey makes the key from mpirun's secret. Where mpirun makes none, the token serves. The variable alone is none: under srun --mpi=pmix
// it is made from the job's number.
func (s *session) orteKey() (*plan, error) {
	text := strings.ReplaceAll(s.env(transports), "-", "")
	if s.Insecure || text == "" {
		return s.planByToken()
	}
	b, err := secret.ParseToken(text)
	if err != nil {
		return nil, fmt.Errorf("cannot use %s as this job's secret: %w", transports, err)
	}
	k := secret.DeriveKey(b, s.Job+"\x00"+text) // the launcher's number of the job may be that of another one too
	return s.planFor(&k)
}
