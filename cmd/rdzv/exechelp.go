package main

const execHelp = `Usage: rdzv exec [flags] -- PROGRAM [ARG]...

    mpirun -np 4 rdzv exec -- python3 main.py
    srun -N2 --ntasks-per-node=8 rdzv exec -- python3 main.py
    rdzv exec --nodes 2 --nproc-per-node 8 -- python3 main.py      on every node

Join the job, wait until all of it is here, and run PROGRAM with RANK,
WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT
and a device index. The first failure anywhere stops PROGRAM everywhere, and
every rdzv of the job exits with its code.

Who runs where, as far as no launcher tells it:
    --launcher NAME         believe this launcher (the     RDZV_LAUNCHER
                            one that is found)
    --nodes N               by hand: on how many nodes     RDZV_NODES
                            this line is run (1)
    --nproc-per-node N      workers of each rdzv: a        RDZV_NPROC_PER_NODE
                            number, gpu, cpu or auto (1)
    --job NAME              name of this run, the same     RDZV_JOB
                            for all of it (made up)

Finding each other:
    --store HOST[:PORT]     the rdzv on HOST keeps the     RDZV_STORE
                            store (found)
    --token-file FILE       the shared secret              RDZV_TOKEN_FILE
                            (~/.config/rdzv/token)
    --net CIDR|NAME|!NAME   use, or do not use, this       RDZV_NET
                            network; more after commas
    --port-range LOW-HIGH   ports for the store            RDZV_PORT_RANGE
                            (29600-29999)
    --insecure              no secret: anybody gets in     RDZV_INSECURE

    RDZV_TOKEN may hold the secret itself, RDZV_JOIN the line that the first
    node prints on a terminal for the others.

The environment of PROGRAM:
    --master-port PORT      MASTER_PORT (a free one)       RDZV_MASTER_PORT
    --device MODE           device index: index, mask,     RDZV_DEVICE
                            local-rank or none (index)
    --set NAME=TEMPLATE     set NAME too, see below; may   RDZV_SET
                            be given again (a line each)
    --as openmpi            OMPI_COMM_WORLD_RANK and the   RDZV_AS
                            like too, as mpirun does

    A TEMPLATE may have {rank} {world_size} {local_rank} {local_world_size}
    {node_rank} {nodes} {master_addr} {master_port} {device} {ifname} in it.

Time, as 10s, 5m or 1h30m:
    --join-timeout D        wait so long for all of the    RDZV_JOIN_TIMEOUT
                            job, 0 is for ever (10m)
    --peer-timeout D        an rdzv silent for so long is  RDZV_PEER_TIMEOUT
                            lost (10s)
    --grace D               from SIGTERM to SIGKILL (10s)  RDZV_GRACE
    --exit-timeout D        once a worker has ended well,  RDZV_EXIT_TIMEOUT
                            stop the others after D
                            (never)

What is said:
    --report FILE           write how the job ended to     RDZV_REPORT
                            FILE, as JSON
    --no-capture            leave standard error alone:    RDZV_NO_CAPTURE
                            no last words in the report
    -q, --quiet             only what ends the job         RDZV_QUIET
    -v, --verbose           how the job begins, too        RDZV_VERBOSE

A flag wins over its variable, both win over the launcher. Launchers are
openmpi (openmpi4, openmpi5), mpich (hydra, intelmpi), slurm (slurm-pmi), pals,
flux, jsm, mvapich2, torchrun, kubeflow, kubernetes; "none" is by hand.

SIGTERM, SIGINT, SIGHUP and SIGQUIT to one rdzv end the job on all nodes;
SIGUSR1 and SIGUSR2 reach the workers of this rdzv.

Exit status, the same of every rdzv of the job:
    0        all workers succeeded
    N        exit code of the worker that failed first
    128+N    signal N ended that worker, or the job
    121      not started: a check failed on some node (if PROGRAM
             is not there it is 127, if it cannot be executed 126)
    122      stragglers were stopped after --exit-timeout
    123      an rdzv, a node or the store was lost without a word
    124      not all came within --join-timeout
    125      rdzv itself failed: wrong usage, no secret
`
