package main

const execHelp = `Usage: rdzv exec [flags] -- PROGRAM [ARG]...

    mpirun -np 4 rdzv exec -- python3 main.py
    srun -N2 --ntasks-per-node=8 rdzv exec -- python3 main.py
    rdzv exec --nodes 2 --nproc-per-node 8 -- python3 main.py      on every node

Join the job, wait until all of its agents have joined, and run PROGRAM with
RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR,
MASTER_PORT and a device index set. An agent is one running "rdzv exec"; each
process of PROGRAM is a worker. The first worker that fails stops all workers on
all nodes, and every agent exits with its code.

Placement, as far as the launcher does not determine it:
    --launcher NAME         use this launcher (detected)   RDZV_LAUNCHER
    --nodes N               number of nodes of a job       RDZV_NODES
                            without a launcher (1)
    --nproc-per-node N      workers per agent: a number,   RDZV_NPROC_PER_NODE
                            gpu, cpu or auto (1)
    --job NAME              name of the job, equal on all  RDZV_JOB
                            its agents (generated)

Finding the other agents:
    --store HOST[:PORT]     the agent on HOST hosts the    RDZV_STORE
                            store (detected)
    --token-file FILE       the shared secret              RDZV_TOKEN_FILE
                            (~/.config/rdzv/token)
    --net CIDR|NAME|!NAME   use, or do not use, this       RDZV_NET
                            network or interface;
                            comma-separated
    --port-range LOW-HIGH   ports for the store            RDZV_PORT_RANGE
                            (29600-29999)
    --insecure              no token: connections are      RDZV_INSECURE
                            not authenticated

    RDZV_TOKEN can hold the token itself, RDZV_JOIN the value that the first
    node prints on a terminal for the other nodes.

Environment of PROGRAM:
    --master-port PORT      MASTER_PORT (a free port)      RDZV_MASTER_PORT
    --device MODE           how a worker gets its device:  RDZV_DEVICE
                            index, mask, local-rank or
                            none (index)
    --set NAME=TEMPLATE     also set NAME; repeatable      RDZV_SET
                            (one per line in RDZV_SET)
    --as openmpi            also set OMPI_COMM_WORLD_RANK  RDZV_AS
                            and the like, as mpirun does

    A TEMPLATE can contain {rank} {world_size} {local_rank} {local_world_size}
    {node_rank} {nodes} {master_addr} {master_port} {device} {ifname}.

Timeouts, such as 10s, 5m or 1h30m:
    --join-timeout D        wait this long for all agents  RDZV_JOIN_TIMEOUT
                            to join, 0 is no limit (10m)
    --peer-timeout D        an agent that is silent for    RDZV_PEER_TIMEOUT
                            this long is lost (10s)
    --grace D               time between SIGTERM and       RDZV_GRACE
                            SIGKILL (10s)
    --exit-timeout D        stop the remaining workers     RDZV_EXIT_TIMEOUT
                            this long after the first one
                            succeeded (never)

Output:
    --report FILE           write how the job ended to     RDZV_REPORT
                            FILE, as JSON
    --no-capture            do not read the stderr of      RDZV_NO_CAPTURE
                            PROGRAM: the report has no
                            lines of it
    -q, --quiet             print only why the job ended   RDZV_QUIET
    -v, --verbose           also print how the job starts  RDZV_VERBOSE

A flag overrides its variable, both override the launcher. Launchers are
openmpi (openmpi4, openmpi5), mpich (hydra, intelmpi), slurm (slurm-pmi), pals,
flux, jsm, mvapich2, torchrun, kubeflow and kubernetes; "none" is no launcher.

SIGTERM, SIGINT, SIGHUP or SIGQUIT to any agent ends the job on all nodes;
SIGUSR1 and SIGUSR2 are forwarded to the workers of the agent that gets them.

Exit status, the same for every agent of the job:
    0        all workers succeeded
    N        exit code of the worker that failed first
    128+N    signal N ended that worker, or the job
    121      not started: a check failed on some node (127 if PROGRAM is
             missing there, 126 if it is not executable)
    122      remaining workers were stopped after --exit-timeout
    123      an agent, a node or the store was lost
    124      not all agents joined within --join-timeout
    125      rdzv itself failed: wrong usage, no token
`
