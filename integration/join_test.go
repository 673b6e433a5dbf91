package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Under each launcher, in each placement, the ranks meet with no flag. Every host has a docker0 with the same address
// that comes first, two networks, and a name that is 127.0.1.1 to itself; the launchers run on node1.
func TestJoin(t *testing.T) {
	b := newBed(t, 3, "--second", "--docker", "--debian")
	b.withSlurm(2, 3)
	here, there := layout{"node1", "node1", "node2", "node2"}, layout{"node2", "node2", "node3", "node3"}
	for _, c := range []struct {
		name string
		want layout
		run  func(s *stay) *process
	}{
		{"openmpi/here", here, func(s *stay) *process {
			return s.on(1, s.openMPI(append([]string{"--host", "node1:2,node2:2", "-np", "4"}, s.exec()...)...)...)
		}},
		{"openmpi/launchernode", there, func(s *stay) *process {
			return s.on(1, s.openMPI(append([]string{"--host", "node2:2,node3:2", "-np", "4"}, s.exec()...)...)...)
		}},
		{"openmpi/addresses", there, func(s *stay) *process {
			return s.on(1, s.openMPI(append([]string{"--host", "10.77.0.12:2,10.77.0.13:2", "-np", "4"}, s.exec()...)...)...)
		}},
		{"openmpi/onePerNode", here, func(s *stay) *process {
			return s.on(1, s.openMPI(append([]string{"--host", "node1,node2", "-np", "2"}, s.exec("--nproc-per-node", "2")...)...)...)
		}},
		{"openmpi/mpmd", here, func(s *stay) *process {
			other := append([]string{":", "-np", "3"}, s.exec("--grace", "9s")...)
			return s.on(1, s.openMPI(append(append([]string{"--host", "node1:2,node2:2", "-np", "1"}, s.exec()...), other...)...)...)
		}},
		{"openmpi/byNode", layout{"node1", "node2", "node1", "node2"}, func(s *stay) *process {
			return s.on(1, s.openMPI(append([]string{"--host", "node1:2,node2:2", "--map-by", "node", "-np", "4"}, s.exec()...)...)...)
		}},
		{"openmpi/byNode/launchernode", layout{"node3", "node2", "node3", "node2"}, func(s *stay) *process {
			return s.on(1, s.openMPI(append([]string{"--host", "node3:2,node2:2", "--map-by", "node", "-np", "4"}, s.exec()...)...)...)
		}},
		{"hydra/here", here, func(s *stay) *process {
			return s.on(1, s.hydra(append([]string{"-hosts", "node1,node2", "-ppn", "2", "-np", "4"}, s.exec()...)...)...)
		}},
		{"hydra/launchernode", there, func(s *stay) *process {
			return s.on(1, s.hydra(append([]string{"-hosts", "node2,node3", "-ppn", "2", "-np", "4"}, s.exec()...)...)...)
		}},
		{"hydra/iface", there, func(s *stay) *process {
			return s.on(1, s.hydra(append([]string{"-iface", "eth1", "-hosts", "node2,node3", "-ppn", "2", "-np", "4"}, s.exec()...)...)...)
		}},
		{"hydra/onePerNode", there, func(s *stay) *process {
			return s.on(1, s.hydra(append([]string{"-hosts", "node2,node3", "-ppn", "1", "-np", "2"}, s.exec("--nproc-per-node", "2")...)...)...)
		}},
		{"slurm/loginnode", there, func(s *stay) *process {
			return s.slurm(1, append([]string{"srun", "-N2", "-n4", "--ntasks-per-node=2"}, s.exec()...)...)
		}},
		{"slurm/allocation", there, func(s *stay) *process {
			return s.slurm(2, append([]string{"salloc", "-Q", "-N2", "-n4", "--ntasks-per-node=2", "srun"}, s.exec()...)...)
		}},
		{"slurm/sbatch", there, func(s *stay) *process {
			return s.batch([]string{"-N2", "-n4", "--ntasks-per-node=2"}, append([]string{"srun"}, s.exec()...)...)
		}},
		{"slurm/uneven", layout{"node2", "node2", "node3"}, func(s *stay) *process {
			return s.slurm(1, append([]string{"srun", "-N2", "-n3"}, s.exec()...)...)
		}},
		{"slurm/arbitrary", layout{"node3", "node2", "node3", "node2"}, func(s *stay) *process {
			return s.arbitrary("node3", "node2", "node3", "node2")
		}},
		{"slurm/onePerNode", there, func(s *stay) *process {
			return s.slurm(1, append([]string{"srun", "-N2", "-n2"}, s.exec("--nproc-per-node", "2")...)...)
		}},
		{"slurm/mpirun", there, func(s *stay) *process {
			return s.batch([]string{"-N2", "-n4", "--ntasks-per-node=2"}, append([]string{mpirun}, s.exec()...)...)
		}},
		{"slurm/mpiexec", there, func(s *stay) *process {
			return s.batch([]string{"-N2", "-n4", "--ntasks-per-node=2"}, append([]string{"mpiexec.hydra"}, s.exec()...)...)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := b.stay(t)
			s.check(c.want, c.run(s))
		})
	}
}

// arbitrary is srun with a task on each of the hosts, in this order: rank 0 may then be on any node of the step.
func (s *stay) arbitrary(hosts ...string) *process {
	s.t.Helper()
	file := filepath.Join(s.root, "hostfile")
	if err := os.WriteFile(file, []byte(strings.Join(hosts, "\n")+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	line := append([]string{"srun", "-n4", "-m", "arbitrary", "-w", file}, s.exec()...)
	return s.startWith([]string{"SLURM_HOSTFILE=" + file}, append(s.bed.slurm("on", "1"), line...)...)
}

// No host's name resolves anywhere: what the launchers know beside names must do.
func TestJoinWithoutHostNames(t *testing.T) {
	b := newBed(t, 3, "--nodns", "--docker")
	b.withSlurm(2, 3)
	there := layout{"node2", "node2", "node3", "node3"}
	for _, c := range []struct {
		name string
		want layout
		run  func(s *stay) *process
	}{
		{"openmpi", there, func(s *stay) *process {
			return s.on(1, s.openMPI(append([]string{"--host", "node2:2,node3:2", "-np", "4"}, s.exec()...)...)...)
		}},
		{"hydra", there, func(s *stay) *process {
			return s.on(1, s.hydra(append([]string{"-iface", "eth0", "-hosts", "node2,node3", "-ppn", "2", "-np", "4"}, s.exec()...)...)...)
		}},
		{"slurm", there, func(s *stay) *process {
			return s.slurm(1, append([]string{"srun", "-N2", "-n4", "--ntasks-per-node=2"}, s.exec()...)...)
		}},
		{"slurm/arbitrary", layout{"node3", "node2", "node3", "node2"}, func(s *stay) *process {
			return s.arbitrary("node3", "node2", "node3", "node2")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := b.stay(t)
			s.check(c.want, c.run(s))
		})
	}
}
