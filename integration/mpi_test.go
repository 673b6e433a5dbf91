package integration

import (
	"fmt"
	"slices"
	"testing"
)

// openMPIProgram adds up the ranks with mpi4py, which Debian builds with Open MPI.
const openMPIProgram = `
import os, sys
from mpi4py import MPI
w = MPI.COMM_WORLD
rank, size, total = w.Get_rank(), w.Get_size(), w.allreduce(w.Get_rank())
sys.stdout.write(f"RANK {os.environ['RANK']} is MPI rank {rank} of {size} sum {total}\n")
`

// mpichProgram does the same with MPICH's library. Its handles are numbers that are fixed by the
// common ABI of MPICH since 3.1, Intel MPI and MVAPICH2 (mpi.h).
const mpichProgram = `
import ctypes, os, sys
mpi = ctypes.CDLL("libmpich.so.12")
world, integer, add = 0x44000000, 0x4c000405, 0x58000003
rank, size, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
assert mpi.MPI_Init(None, None) == 0
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(size))
mpi.MPI_Allreduce(ctypes.byref(rank), ctypes.byref(total), 1, integer, add, world)
rank, size, total = rank.value, size.value, total.value
sys.stdout.write(f"RANK {os.environ['RANK']} is MPI rank {rank} of {size} sum {total}\n")
mpi.MPI_Finalize()
`

// debianPython is the Python for which mpi4py is installed.
const debianPython = "/usr/bin/python3"

// An mpiCase is a job of 4 workers that are MPI programs.
type mpiCase struct {
	launch  func(p *clusterPlace) []string
	flags   []string
	program []string
	output  func(rank int) string // after "RANK n "
}

// With one worker per task, workers may be MPI programs: to MPI, a worker is the rank of its task.
// Workers that share a task are alone to MPI, and have only the ranks of rdzv.
//
// MPICH runs on one host. Over two hosts in network namespaces, MPICH 4.0.2's MPI_Finalize hung in 3
// of 25 runs on a busy machine without rdzv.
var mpiCases = map[string]mpiCase{
	"openmpi": {
		func(p *clusterPlace) []string {
			return p.openMPI("--host", "node1:2,node2:2", "-np", "4")
		},
		nil, []string{debianPython, "-c", openMPIProgram}, ofFour,
	},
	"openmpi/shared": {
		func(p *clusterPlace) []string { return p.openMPI("--host", "node1,node2", "-np", "2") },
		[]string{"--nproc-per-node", "2"}, []string{debianPython, "-c", openMPIProgram}, alone,
	},
	"hydra": {
		func(p *clusterPlace) []string { return p.hydra("-hosts", "node1", "-np", "4") },
		nil, []string{debianPython, "-c", mpichProgram}, ofFour,
	},
	"hydra/shared": {
		func(p *clusterPlace) []string { return p.hydra("-hosts", "node1", "-np", "2") },
		[]string{"--nproc-per-node", "2"}, []string{debianPython, "-c", mpichProgram}, alone,
	},
}

func ofFour(rank int) string { return fmt.Sprintf("is MPI rank %d of 4 sum 6", rank) }
func alone(int) string       { return "is MPI rank 0 of 1 sum 0" }

func TestMPIPrograms(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	for name, m := range mpiCases {
		t.Run(name, func(t *testing.T) {
			p := c.newPlace(t)
			job := p.on(1, append(m.launch(p), rdzvExec(m.flags, m.program)...)...)
			job.checkCode(0)
			for rank := range 4 {
				line := fmt.Sprintf("RANK %d %s", rank, m.output(rank))
				if got := job.linesWith(fmt.Sprintf("RANK %d ", rank)); !slices.Equal(got, []string{line}) {
					t.Errorf("rank %d printed %q, want %q", rank, got, line)
				}
			}
		})
	}
}
