package main

import (
	"fmt"
	"slices"
	"strings"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/options"
)

// topic is a help about flags of exec that only some users need. The help of exec has all flags.
type topic struct {
	name  string
	prose string // with the flags at "{flags}"
	flags []string
}

// topics are those of "rdzv help TOPIC".
func topics() []topic {
	return []topic{
		{"network", networkHelp, []string{
			"store", "token-file", "insecure", "net", "port-range", "master-port", "join-timeout",
			"peer-timeout",
		}},
		{"restarts", restartsHelp, []string{
			"max-restarts", "no-restart-on", "spares", "nodes", "last-call", "grace", "peer-timeout",
		}},
		{"etcd", etcdHelp, []string{
			"store", "store-ca", "store-cert", "store-key", "store-prefix",
			"store-timeout", "peer-timeout",
		}},
	}
}

const networkHelp = `Usage: rdzv exec [flags] [--] PROGRAM [ARG]...

    rdzv exec --nodes 2 --store node1 -- python3 main.py           on every node

The agents of a job connect to a store, which one of them hosts. Under mpirun
and srun they find it through the launcher. Without a launcher they find each
other by multicast; if the network has none, name one of the nodes with --store.
Its agent then hosts the store, and the others connect to it.

Connections need a token that all nodes share: ~/.config/rdzv/token, which exec
creates if it is missing, or RDZV_TOKEN. mpirun of Open MPI 4 and mpiexec.hydra
give each job a secret of its own. The port of the store is in --port-range.
MASTER_PORT, which rank 0 of PyTorch listens on, is any free port.

{flags}
`

const restartsHelp = `Usage: rdzv exec [flags] [--] PROGRAM [ARG]...

    rdzv exec --nodes 2 --max-restarts 3 --spares 1 -- python3 main.py
    rdzv exec --nodes 2:4 -- python3 main.py                     on 2 to 4 nodes

With --max-restarts, if a worker fails or a node is lost, all workers of the job
are stopped and started again, which is the next attempt. RDZV_ATTEMPT and
TORCHELASTIC_RESTART_COUNT are its number. The program must continue from its
last snapshot. No worker of an attempt runs when the next attempt starts.

A lost node is replaced by a spare, or, without a launcher, by an agent that is
started again; with MIN:MAX the job continues with fewer nodes. The node whose
agent hosts the store cannot be replaced, unless an etcd cluster is the store.

{flags}
`

const etcdHelp = `Usage: rdzv exec [flags] [--] PROGRAM [ARG]...

    rdzv exec --store https://etcd1:2379,https://etcd2:2379 -- python3 main.py

If --store has URLs, an existing etcd cluster (3.4 or later) is the store of the
job, and no agent hosts it: each agent can then be lost and replaced. All keys
begin with the prefix, and are removed when the job has ended.

{flags}
`

// help is the topic as it is printed.
func (t topic) help() string {
	byName := map[string]flags.Row{}
	for _, g := range options.New().Groups() {
		for _, r := range g.Rows {
			byName[r.Name()] = r
		}
	}
	var rows strings.Builder
	for _, name := range t.flags {
		rows.WriteString(byName[name].Help(false))
	}
	if t.name == "etcd" {
		rows.WriteString("\n" + options.EtcdNote)
	}
	return strings.Replace(t.prose, "{flags}\n", rows.String(), 1)
}

func findTopic(name string) (topic, bool) {
	all := topics()
	i := slices.IndexFunc(all, func(t topic) bool { return t.name == name })
	if i < 0 {
		return topic{}, false
	}
	return all[i], true
}

// briefFlags are the flags of exec that most users need, with a text of one line.
var briefFlags = [...][2]string{
	{"nodes", "number of nodes, if no launcher starts rdzv on them"},
	{"nproc-per-node", "workers on each node; gpu is one for each GPU"},
	{"store", "a node that all others can reach"},
	{"tag", "begin each line of output with its rank and host"},
	{"log-dir", "also write the output of each rank to a file in DIR"},
	{"export", "copy a variable from rank 0's node to all workers"},
	{"max-restarts", "after a failure start all workers again (0)"},
	{"grace", "time between SIGTERM and SIGKILL (10s)"},
	{"verbose", "also print how the job starts"},
}

// briefHelp is the help of exec for -h: one screen.
func briefHelp() string {
	usage := map[string]string{}
	for _, g := range options.New().Groups() {
		for _, r := range g.Rows {
			usage[r.Name()] = r.Usage
		}
	}
	var b strings.Builder
	head, _, _ := strings.Cut(execHelp, "\n\nJoin the job")
	b.WriteString(head + "\n\n" +
		"Run PROGRAM as the workers of one job, with RANK, WORLD_SIZE, MASTER_ADDR etc.\n" +
		programGrammar + "\n")
	for _, flag := range briefFlags {
		fmt.Fprintf(&b, "    %-*s%s\n", flags.TextColumn-4, usage[flag[0]], flag[1])
	}
	return b.String() + `
rdzv exec --help prints all flags, and exit codes; rdzv help TOPIC those about
the network (token, interfaces, ports), restarts, or etcd (a cluster as store).
`
}
