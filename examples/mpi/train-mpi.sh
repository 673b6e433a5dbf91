#!/bin/bash
# Trains with Open MPI on the nodes of the file "hosts", one process for each slot:
#
#     ./train-mpi.sh --epochs 20
#
# The arguments are those of train.py. Every node has this directory and ~/venv, with torch and rdzv,
# at the same paths. mpirun does not give PATH to other nodes, so that the paths must be complete.
set -eu
cd "$(dirname "$0")"
venv=~/venv/bin
exec mpirun --hostfile hosts "$venv/rdzv" exec -- "$venv/python3" train.py "$@"
