package main

const execHelp = `Usage: rdzv exec [flags] -- PROGRAM [ARG]...

Join the job, wait until all its processes are here, and run PROGRAM with RANK,
WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and the device
index set. The first failure anywhere stops PROGRAM everywhere, and every rdzv
of the job exits with its code.

    mpirun -np 4 rdzv exec -- python3 main.py
    srun -N2 --ntasks-per-node=8 rdzv exec -- python3 main.py
    rdzv exec --nodes 2 --nproc-per-node 8 -- python3 main.py     on each node

Who runs where (taken from the launcher when not given):
    --launcher NAME         take this launcher's word: openmpi, hydra, slurm,
                            torchrun, none (by hand), ...       RDZV_LAUNCHER
    --nodes N               by hand: how many nodes (1)         RDZV_NODES
    --nproc-per-node N      workers per task of the launcher, by hand per node:
                            a number, auto, gpu or cpu (1) RDZV_NPROC_PER_NODE
    --job NAME              name of this run                    RDZV_JOB

Finding each other:
    --store HOST[:PORT]     the agent on HOST keeps the store   RDZV_STORE
    --token-file FILE       the secret (~/.config/rdzv/token)   RDZV_TOKEN_FILE
    --net CIDR|NAME|!NAME   use only, or not, these networks    RDZV_NET
    --port-range LOW-HIGH   ports of the store (29600-29999)    RDZV_PORT_RANGE
    --insecure              no key: anybody can get in          RDZV_INSECURE
    The secret may also stand in RDZV_TOKEN, the line that the first node prints
    in RDZV_JOIN.

The environment of PROGRAM:
    --master-port PORT      MASTER_PORT (a free one)            RDZV_MASTER_PORT
    --device MODE           index, mask, local-rank or none     RDZV_DEVICE
    --set NAME=TEMPLATE     set NAME too, with {rank} {world_size} {local_rank}
                            {local_world_size} {node_rank} {nodes} {master_addr}
                            {master_port} {device} {ifname}     RDZV_SET
    --as openmpi            set OMPI_COMM_WORLD_* too           RDZV_AS
    --no-capture            leave standard error alone          RDZV_NO_CAPTURE

Time:
    --join-timeout D        wait so long for all (10m)          RDZV_JOIN_TIMEOUT
    --peer-timeout D        a silent agent is lost after (10s)  RDZV_PEER_TIMEOUT
    --grace D               between SIGTERM and SIGKILL (10s)   RDZV_GRACE

    -q, --quiet             only what ends the job              RDZV_QUIET
    -v, --verbose           say more                            RDZV_VERBOSE

A flag wins over its variable, both win over the launcher.

Exit status, the same of every rdzv of the job:
    0        all workers succeeded
    N        exit code of the worker that failed first
    128+N    a worker, or the job, was ended by signal N
    121      the job was not started: a check failed on some node
             (126: PROGRAM cannot be executed, 127: it is not there)
    123      an agent, a node or the store was lost without a word
    124      not all came within --join-timeout
    125      rdzv itself failed: wrong usage, no key
`
