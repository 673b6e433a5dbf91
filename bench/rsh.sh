#!/bin/sh
# Stands in for ssh between the hosts of the testbed: rsh.sh HOST WORD... (the words are a shell line, as with ssh). Of
# the environment it brings what tells a process of this run from others.
while [ "${1#-}" != "$1" ]; do shift; done # ssh options such as -x
host=$1
shift
exec "$HOSTS" rsh "$host" "export BENCH_JOB=$BENCH_JOB;" "$@"
