package meet

import (
	"fmt"
	"strings"
)

const transports = "OMPI_MCA_orte_precondition_transports"

// openMPI4 tells mpirun's own ranks from tasks that merely have variables of that name: srun --mpi=pmix sets the transports too, from
// the job's number, and they are no secret there.
func (s *session) openMPI4() bool {
	return s.from("openmpi4") && s.env(transports) != "" && (s.env("OMPI_MCA_orte_hnp_uri") != "" || s.env("OMPI_MCA_ess_base_jobid") != "")
}

// orte plans for Open MPI 4: mpirun makes 128 random bits for each job, and gives them to its ranks alone.
func (s *session) orte() (*plan, error) {
	key, err := s.orteKey()
	if err != nil {
		return nil, err
	}
	p, err := s.planFor(key)
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
	if hnp, err := parseDaemonURI(s.env("OMPI_MCA_orte_hnp_uri")); err == nil {
		sources = append(sources, s.seen(hnp.port(), ports), fixed("mpirun's host", 2, hnp.ips(), ports))
	}
	if nodes, err := parseNodeRegex(s.env("OMPI_MCA_orte_node_regex")); err == nil {
		sources = append(sources, s.names(append(nodes[1:], nodes[0]), 1, ports))
	}
	return sources
}

func (s *session) orteKey() (*Key, error) {
	if s.Insecure {
		return nil, nil
	}
	secret := strings.ReplaceAll(s.env(transports), "-", "")
	b, err := ParseToken(secret)
	if err != nil {
		return nil, fmt.Errorf("cannot use %s as this job's secret: %w", transports, err)
	}
	k := DeriveKey(b, s.Job+"\x00"+secret)
	return &k, nil
}
