#!/bin/sh
# rsh.sh HOST WORD...: replaces ssh between the hosts of the testbed; as with ssh, the words are a
# shell command. It passes on BENCH_JOB, by which the processes of this run are found.
while [ "${1#-}" != "$1" ]; do shift; done # ssh options such as -x
host=$1
shift
exec "$HOSTS" rsh "$host" "export BENCH_JOB=$BENCH_JOB;" "$@"
