package main

import (
	"fmt"
	"strings"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/options"
	"rdzv/envmap"
)

// programGrammar says where the program begins, for the helps of exec.
const programGrammar = "" +
	"PROGRAM begins with the first word that is not a flag; what follows is for it. A\n" +
	`FILE.py is run by "python3 -u", unless it is the path of an executable file with
a #! line. -m MODULE runs a Python module. "--" before PROGRAM is optional.
`

// execHelp is the help of exec, with the names of the platforms.
func execHelp() string {
	var names []string
	for _, l := range envmap.Platforms() {
		names = append(names, string(l))
	}
	lines := flags.Fold(strings.Join(names, ", ")+".", flags.HelpWidth)
	return strings.Replace(execText, "{platforms}", strings.Join(lines, "\n"), 1)
}

const execText = `Usage: rdzv exec [flags] [--] PROGRAM [ARG]...

    mpirun -np 4 rdzv exec -- python3 main.py
    srun -N2 --ntasks-per-node=8 rdzv exec -- python3 main.py
    rdzv exec --hosts node1:8,node2:8 -- python3 main.py
    rdzv exec --nodes 2 --nproc-per-node 8 -- python3 main.py      on every node

Join the job, wait until all of its agents have joined, and run PROGRAM with
RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR,
MASTER_PORT and a device index set. An agent is one running "rdzv exec"; each
process of PROGRAM is a worker. When a worker fails, rdzv stops all workers on
all nodes, and every agent exits with the code of the first worker that failed;
with --max-restarts it starts all workers again instead.

` + programGrammar + `
{flags}

A flag overrides its variable, and both override the launcher. Launchers are
openmpi (openmpi4, openmpi5), mpich (hydra, intelmpi), slurm (slurm-pmi), pals,
flux, jsm, mvapich2 and torchrun; with one agent on each node
{platforms}
"none" ignores any launcher; "env" uses RANK, WORLD_SIZE and MASTER_ADDR.

torchrun's flags work too if they mean the same: --nnodes, --nproc_per_node,
--node_rank, --master_addr (as --store), --master_port, --max_restarts,
--rdzv_id (as --job) and --standalone (as --nodes 1).

SIGTERM, SIGINT, SIGHUP or SIGQUIT to any agent ends the job on all nodes. But
if a restart is left, and an agent can be replaced, SIGTERM to this agent alone
makes only this agent leave the job. SIGUSR1 and SIGUSR2 are forwarded to the
workers of the agent that gets them.

Exit status, the same for every agent of the job:
    0        all workers succeeded
    N        exit code of the worker that failed first
    128+N    signal N ended the first worker that failed, or the job
    119      the job stalled (--stall-timeout)
    121      not started: a check failed on some node (127 if PROGRAM or its
             script is missing there, 126 if it is not executable)
    122      remaining workers were stopped after --exit-timeout
    123      an agent, a node or the store was lost
    124      not all agents joined within --join-timeout
    125      rdzv itself failed: wrong usage, no token
`

// briefFlags are the flags of exec that most users need, with a text of one line.
var briefFlags = [...][2]string{
	{"hosts", "start the job on HOST[:WORKERS],... by ssh"},
	{"nodes", "number of nodes, if no launcher starts rdzv on them"},
	{"nproc-per-node", "workers on each node; gpu is one for each GPU"},
	{"store", "a node that all others can reach"},
	{"job", "name of the job, if several run at the same time"},
	{"net", "use, or do not use, this network or interface"},
	{"join-timeout", "wait this long for all nodes (10m)"},
	{"tag", "begin each line of output with its rank and host"},
	{"log-dir", "also write the output of each rank to a file in DIR"},
	{"export", "copy a variable from rank 0's node to all workers"},
	{"chdir", "run PROGRAM in DIR"},
	{"strict", "do not start if the nodes differ"},
	{"max-restarts", "after a failure start all workers again (0)"},
	{"stall-timeout", "end a job that makes no progress for this long"},
	{"report", "write how the job ended to FILE"},
	{"grace", "time between SIGTERM and SIGKILL (10s)"},
	{"verbose", "also print how the job starts"},
}

// briefHelp is the help of exec for -h: one screen.
func briefHelp() string {
	usage := map[string]string{}
	for _, g := range options.New().ExecGroups() {
		for _, r := range g.Rows {
			usage[r.Name()] = r.Usage
		}
	}
	var b strings.Builder
	head, _, _ := strings.Cut(execText, "\n\nJoin the job")
	b.WriteString(head + "\n\n" +
		"Run PROGRAM as the workers of one job, with RANK, WORLD_SIZE, MASTER_ADDR etc.\n" +
		programGrammar + "\n")
	for _, flag := range briefFlags {
		fmt.Fprintf(&b, "    %-*s%s\n", flags.TextColumn-4, usage[flag[0]], flag[1])
	}
	return b.String() + `
rdzv exec --help prints all flags, and exit codes.
`
}
