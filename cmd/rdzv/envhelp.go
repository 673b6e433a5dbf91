package main

const envHelp = `Usage: rdzv env [flags]

    mpirun -np 2 rdzv env --explain
    eval "$(rdzv env)"

Print the variables that exec would set here for its first worker. It does not
contact other agents: variables that the agents agree on when they meet are
left out, such as MASTER_ADDR, MASTER_PORT and all that the launcher omits.

    --explain               print the detected launcher,   RDZV_EXPLAIN
                            the variables that identified
                            it, the source of each value,
                            and which of your variables
                            are kept, replaced or ignored
    --format sh|json        for a POSIX shell, or one      RDZV_FORMAT
                            JSON object (sh)

The flags of exec that affect values work here too: --launcher, --nodes,
--nproc-per-node, --job, --master-port, --device, --set, --as.

Exit status:
    0        printed
    1        the placement of this process cannot be determined
    2        wrong usage
`
