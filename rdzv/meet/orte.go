package meet

import (
	"fmt"
	"strings"
)

const transports = "OMPI_MCA_orte_precondition_transports"

// openMPI4 tells mpirun's own ranks from tasks that merely have variables of that name: srun --mpi=pmix sets the transports too, from
// the job's number, and they are no secret there.
func (s *session) openMPI4() bool {
	if s.Launcher != "" && !strings.HasPrefix(s.Launcher, "openmpi") {
		return false
	}
	return s.env(transports) != "" && (s.env("OMPI_MCA_orte_hnp_uri") != "" || s.env("OMPI_MCA_ess_base_jobid") != "")
}

// orte plans for Open MPI 4: mpirun makes 128 random bits for each job, and gives them to its ranks alone.
func (s *session) orte() (*plan, error) {
	key, err := s.orteKey()
	if err != nil {
		return nil, err
	}
	p := s.planFor(key)
	if p.addrs, err = s.listenAddrs(); err != nil {
		return nil, err
	}
	p.sources = []source{s.nearby(p.ports)}
	return p, nil
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
