package main

const envHelp = `Usage: rdzv env [flags]

    mpirun -np 2 rdzv env --explain
    eval "$(rdzv env)"

Print what exec would set here for its first worker. Nobody is met: what the
agents agree on when they meet is left out, such as MASTER_ADDR, MASTER_PORT and
what this launcher does not tell.

    --explain               which launcher was found, by   RDZV_EXPLAIN
                            which variables, where every
                            value is from, what of yours
                            is kept, replaced, ignored
    --format sh|json        for a POSIX shell, or one      RDZV_FORMAT
                            object (sh)

The flags of exec that change a value count here too: --launcher, --nodes,
--nproc-per-node, --job, --master-port, --device, --set, --as.

Exit status:
    0        printed
    1        it cannot be told where this process is
    2        wrong usage
`
