// Package pmi is a client of PMI-1, the protocol by which the ranks of a job exchange short values
// through Hydra, the process manager of MPICH and Intel MPI.
//
// Package meet decides which values are exchanged.
package pmi
