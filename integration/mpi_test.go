package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// openMPIProgram adds up the ranks with mpi4py, which Debian has built with Open MPI.
const openMPIProgram = `
import os, sys
from mpi4py import MPI
w = MPI.COMM_WORLD
total = w.allreduce(w.Get_rank())
sys.stdout.write(f"RANK {os.environ['RANK']} is MPI rank {w.Get_rank()} of {w.Get_size()} sum {total}\n")
`

// mpichProgram does the same with MPICH's library. Its handles are plain numbers, fixed by the ABI that MPICH 3.1 and later,
// Intel MPI and MVAPICH2 share (mpi.h).
const mpichProgram = `
import ctypes, os, sys
mpi = ctypes.CDLL("libmpich.so.12")
world, integer, add = 0x44000000, 0x4c000405, 0x58000003
rank, size, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
assert mpi.MPI_Init(None, None) == 0
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(size))
mpi.MPI_Allreduce(ctypes.byref(rank), ctypes.byref(total), 1, integer, add, world)
sys.stdout.write(f"RANK {os.environ['RANK']} is MPI rank {rank.value} of {size.value} sum {total.value}\n")
mpi.MPI_Finalize()
`

// A worker may be an MPI program: with one worker to a task it is the rank that the launcher has made, under Open MPI again and
// again. Workers that share a task are each alone to MPI, and the ranks of rdzv count. MPICH runs on one host: over two in
// network namespaces its MPI_Finalize hung in 3 of 25 runs on a busy machine, without rdzv (MPICH 4.0.2). So do two programs in
// a row of Open MPI 4.1.4: over two hosts mpirun hung in 1 of 40 runs without rdzv, after both had said all.
func TestMPIPrograms(t *testing.T) {
	const debians = "/usr/bin/python3" // mpi4py is for this one
	b := newBed(t, 2)
	for name, c := range map[string]struct {
		launch func(s *stay) []string
		flags  []string
		prog   []string
		said   func(rank int) string
		times  int
	}{
		"openmpi": {
			func(s *stay) []string { return s.openMPI("--host", "node1:2,node2:2", "-np", "4") }, nil,
			[]string{debians, "-c", openMPIProgram}, ofFour, 1,
		},
		"openmpi/twice": {
			func(s *stay) []string { return s.openMPI("--host", "node1:4", "-np", "4") }, nil,
			[]string{"sh", "-c", `"$@" && "$@"`, "sh", debians, "-c", openMPIProgram}, ofFour, 2,
		},
		"openmpi/shared": {
			func(s *stay) []string { return s.openMPI("--host", "node1,node2", "-np", "2") }, []string{"--nproc-per-node", "2"},
			[]string{debians, "-c", openMPIProgram}, alone, 1,
		},
		"hydra": {
			func(s *stay) []string { return s.hydra("-hosts", "node1", "-np", "4") }, nil,
			[]string{debians, "-c", mpichProgram}, ofFour, 1,
		},
		"hydra/shared": {
			func(s *stay) []string { return s.hydra("-hosts", "node1", "-np", "2") }, []string{"--nproc-per-node", "2"},
			[]string{debians, "-c", mpichProgram}, alone, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := b.stay(t)
			job := s.on(1, append(c.launch(s), rdzvExec(c.flags, c.prog)...)...)
			if code := job.code(); code != 0 {
				t.Errorf("the job ended with %d", code)
			}
			for rank := range 4 {
				want := fmt.Sprintf("RANK %d %s", rank, c.said(rank))
				if got := job.linesWith(fmt.Sprintf("RANK %d ", rank)); !slices.Equal(got, slices.Repeat([]string{want}, c.times)) {
					t.Errorf("rank %d said %q, want %q %d times", rank, strings.Join(got, "\n"), want, c.times)
				}
			}
		})
	}
}

func ofFour(rank int) string { return fmt.Sprintf("is MPI rank %d of 4 sum 6", rank) }
func alone(int) string       { return "is MPI rank 0 of 1 sum 0" }
