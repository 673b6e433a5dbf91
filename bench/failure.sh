#!/bin/bash
# failure.sh [OUT.jsonl]: a worker dies; how long until the last worker, and the last descendant, of its job has gone? rdzv
# and its peers in turn, in one run, each worker with a descendant in a session of its own. Needs root and, for srun, Slurm:
# both are run on a host of the integration tests' testbed. N=4, REPS=3, LIMIT=8 (seconds; beyond: never).
set -eu
here=$(dirname "$(readlink -f "$0")")
testbed=$here/../integration/testbed
out=$(readlink -f "${1:-$here/results/failure.jsonl}")
HOSTS_DIR=$(mktemp -d)
export HOSTS_DIR
trap '"$testbed/slurm" down; "$testbed/hosts" down; rm -rf "$HOSTS_DIR"' EXIT
"$testbed/hosts" up 1
"$testbed/slurm" up
"$testbed/slurm" on 1 "$here/bench.py" tree --how kill9,exit1 --mode grandsid \
  --launchers rdzv,rdzv-mpirun,torchrun-tuned,openmpi,mpich,_srun,_srun-K \
  --n "${N:-4}" --reps "${REPS:-3}" --limit "${LIMIT:-8}" --settle 1 --out "$out"
"$here/report.py" "$out"
