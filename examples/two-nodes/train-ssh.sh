#!/bin/bash
# Trains on this node and on others that ssh reaches:
#
#     ./train-ssh.sh node2 node3 -- --epochs 20
#
# The words after -- are the arguments of train.py. Every node has this directory, at the same path,
# ~/venv with torch and rdzv, and the same ~/.config/rdzv/token.
set -eu
cd "$(dirname "$0")"

others=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	others+=("$1")
	shift
done
[ $# = 0 ] || shift

# The same command on every node. With GPUs: --nproc-per-node gpu.
command="cd ${PWD@Q} && . ~/venv/bin/activate && exec rdzv exec --nodes $((${#others[@]} + 1)) \
	--store $(hostname) --nproc-per-node 2 -- python3 train.py ${*@Q}"

for node in "${others[@]}"; do
	ssh -n "$node" "$command" &
done
code=0
bash -c "$command" || code=$? # Ctrl-C ends the job on all nodes
wait
exit "$code"
