#!/bin/bash
# Trains on this node and on others that ssh reaches:
#
#     ./train-ssh.sh node2 node3 -- --epochs 20
#
# The words after -- are the arguments of train.py. Every node has this directory, at the same path,
# and ~/venv with torch and rdzv.
set -eu
cd "$(dirname "$0")"

others=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	others+=("$1")
	shift
done
[ $# = 0 ] || shift

# The same command on every node. With GPUs, omit --nproc-per-node.
command="cd ${PWD@Q} && . ~/venv/bin/activate && exec rdzv exec --nodes $((${#others[@]} + 1)) \
	--store $(hostname) --join-timeout 1m --nproc-per-node 2 -- python3 train.py ${*@Q}"

# A secret that all nodes get, and that ps does not show: the others read it from stdin.
RDZV_TOKEN=$(~/venv/bin/rdzv token)
export RDZV_TOKEN
on_others="read -r RDZV_TOKEN && export RDZV_TOKEN && $command"

shells=()
for node in "${others[@]}"; do
	# shellcheck disable=SC2029 # it is meant to expand here
	ssh "$node" "$on_others" <<<"$RDZV_TOKEN" &
	shells+=("$!")
done

# In the background, because bash runs a trap only when what is in the foreground has ended. There
# bash lets programs ignore Ctrl-C and gives them no stdin: the subshell undoes that.
(trap - INT QUIT; exec bash -c "$command") <&0 &
agent=$!
stopped=
trap 'stopped=yes; kill "$agent"' TERM HUP # ends the job on all nodes, as Ctrl-C does
trap : INT QUIT
code=0
wait "$agent" || code=$?
while kill -0 "$agent" 2>/dev/null; do # a signal has interrupted the wait
	code=0
	wait "$agent" || code=$?
done
# A node that has not joined yet waits until --join-timeout, without ssh too.
[ -z "$stopped" ] || kill "${shells[@]}" 2>/dev/null || :
wait
exit "$code"
