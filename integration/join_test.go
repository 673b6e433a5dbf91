package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A joinCase is a job of peers and the expected layout of its ranks.
type joinCase struct {
	name  string
	want  layout
	start func(p *clusterPlace) *process // nil if the launcher crashes by itself
}

// The following start a job of peers with arguments of the launcher and flags of rdzv exec.

func openMPIJob(args string, flags ...string) func(p *clusterPlace) *process {
	return func(p *clusterPlace) *process {
		return p.on(1, p.openMPI(append(strings.Fields(args), p.exec(flags...)...)...)...)
	}
}

func hydraJob(args string, flags ...string) func(p *clusterPlace) *process {
	return func(p *clusterPlace) *process {
		return p.on(1, p.hydra(append(strings.Fields(args), p.exec(flags...)...)...)...)
	}
}

// slurmJob runs a command of Slurm on a host.
func slurmJob(host int, command string, flags ...string) func(p *clusterPlace) *process {
	return func(p *clusterPlace) *process {
		return p.slurm(host, append(strings.Fields(command), p.exec(flags...)...)...)
	}
}

// batchJob runs a launcher in a batch script with 2 tasks on each of two nodes.
func batchJob(launcher string) func(p *clusterPlace) *process {
	return func(p *clusterPlace) *process {
		options := []string{"-N2", "-n4", "--ntasks-per-node=2"}
		return p.batch(options, append([]string{launcher}, p.exec()...)...)
	}
}

// arbitraryJob runs srun with a task on each of the hosts, in this order, so that rank 0 may be on
// any node of the step.
func arbitraryJob(hosts ...string) func(p *clusterPlace) *process {
	return func(p *clusterPlace) *process {
		p.t.Helper()
		file := filepath.Join(p.root, "hostfile")
		if err := os.WriteFile(file, []byte(strings.Join(hosts, "\n")+"\n"), 0o600); err != nil {
			p.t.Fatal(err)
		}
		line := append([]string{"on", "1", "srun", "-n4", "-m", "arbitrary", "-w", file},
			p.exec()...)
		return p.startWith([]string{"SLURM_HOSTFILE=" + file}, p.cluster.slurm(line...)...)
	}
}

// mpmdJob has two programs. Open MPI 5.0.7 crashes if there is more than one.
func mpmdJob(p *clusterPlace) *process {
	line := append(strings.Fields("--host node1:2,node2:2 -np 1"), p.exec()...)
	line = append(line, ":", "-np", "3")
	job := p.on(1, p.openMPI(append(line, p.exec("--grace", "9s")...)...)...)
	alone := strings.Fields("--host node1:2,node2:2 -np 1 true : -np 3 true")
	return p.unlessMpirunCrashed(job, alone...)
}

func (c *cluster) runJoinCases(t *testing.T, cases []joinCase) {
	for _, j := range cases {
		t.Run(j.name, func(t *testing.T) {
			p := c.newPlace(t)
			job := j.start(p)
			if job == nil {
				t.Skip(mpirunCrashes)
			}
			p.check(j.want, job)
		})
	}
}

// The agents of a job find each other without flags, under each launcher, however it places the
// ranks. Each host has two networks, a docker0 that comes first and has the same address
// everywhere, and its own name resolves to 127.0.1.1. The launchers run on node1.
func TestJoin(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, "--second", "--docker", "--debian")
	c.startSlurm(2, 3)
	here := layout{"node1", "node1", "node2", "node2"}
	remote := layout{"node2", "node2", "node3", "node3"}
	alternating := layout{"node3", "node2", "node3", "node2"}
	c.runJoinCases(t, []joinCase{
		{"openmpi/here", here, openMPIJob("--host node1:2,node2:2 -np 4")},
		{"openmpi/remote", remote, openMPIJob("--host node2:2,node3:2 -np 4")},
		{"openmpi/addresses", remote, openMPIJob("--host 10.77.0.12:2,10.77.0.13:2 -np 4")},
		{"openmpi/onePerNode", here, openMPIJob("--host node1,node2 -np 2", "--nproc-per-node",
			"2")},
		{"openmpi/mpmd", here, mpmdJob},
		{"openmpi/byNode", layout{"node1", "node2", "node1", "node2"},
			openMPIJob("--host node1:2,node2:2 --map-by node -np 4")},
		{"openmpi/byNode/remote", alternating,
			openMPIJob("--host node3:2,node2:2 --map-by node -np 4")},

		{"hydra/here", here, hydraJob("-hosts node1,node2 -ppn 2 -np 4")},
		{"hydra/remote", remote, hydraJob("-hosts node2,node3 -ppn 2 -np 4")},
		{"hydra/iface", remote, hydraJob("-iface eth1 -hosts node2,node3 -ppn 2 -np 4")},
		{"hydra/onePerNode", remote,
			hydraJob("-hosts node2,node3 -ppn 1 -np 2", "--nproc-per-node", "2")},

		{"slurm/loginnode", remote, slurmJob(1, "srun -N2 -n4 --ntasks-per-node=2")},
		{"slurm/allocation", remote, slurmJob(2, "salloc -Q -N2 -n4 --ntasks-per-node=2 srun")},
		{"slurm/sbatch", remote, batchJob("srun")},
		{"slurm/uneven", layout{"node2", "node2", "node3"}, slurmJob(1, "srun -N2 -n3")},
		{"slurm/arbitrary", alternating, arbitraryJob(alternating...)},
		{"slurm/onePerNode", remote, slurmJob(1, "srun -N2 -n2", "--nproc-per-node", "2")},
		{"slurm/mpirun", remote, batchJob(mpirun)},
		{"slurm/mpiexec", remote, batchJob("mpiexec.hydra")},
	})
}

// No host name resolves on any host: what else the launchers know of the hosts is enough.
func TestJoinWithoutHostNames(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, "--nodns", "--docker")
	c.startSlurm(2, 3)
	remote := layout{"node2", "node2", "node3", "node3"}
	alternating := layout{"node3", "node2", "node3", "node2"}
	c.runJoinCases(t, []joinCase{
		{"openmpi", remote, openMPIJob("--host node2:2,node3:2 -np 4")},
		{"hydra", remote, hydraJob("-iface eth0 -hosts node2,node3 -ppn 2 -np 4")},
		{"slurm", remote, slurmJob(1, "srun -N2 -n4 --ntasks-per-node=2")},
		{"slurm/arbitrary", alternating, arbitraryJob(alternating...)},
	})
}
