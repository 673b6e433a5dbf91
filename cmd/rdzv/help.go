package main

import (
	"fmt"
	"slices"
	"strings"
)

const helpHelp = `Usage: rdzv help [COMMAND]

    rdzv help exec

Print what rdzv does, or what COMMAND does.

Exit status:
    0        printed
    2        wrong usage
`

const overview = `Usage: rdzv COMMAND [flags] [-- PROGRAM [ARG]...]

    mpirun -np 4 rdzv exec -- python3 main.py
    srun -N2 --ntasks-per-node=8 rdzv exec -- python3 main.py
    rdzv exec --nodes 2 --nproc-per-node 8 -- python3 main.py      on every node
    rank=$(rdzv get-rank)

Put before a PyTorch program, rdzv makes one job of its processes under any
launcher: it finds the others, sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR,
MASTER_PORT and the device index, and when one fails it stops all.

Commands:
    exec       join the job, set the environment, run PROGRAM
    env        print the environment that exec would set, or explain it
    get-rank   print the rank of this process
    token      print a new token
    version    print the version
    help       print the help of a command

"rdzv help COMMAND" prints the flags of a command. Every flag has a twin in the
environment: --join-timeout is RDZV_JOIN_TIMEOUT. The flag wins.
`

func (a *app) help(args []string) int {
	switch len(args) {
	case 0:
		return a.print(overview)
	case 1:
		if c, ok := find(args[0]); ok {
			return a.print(c.help)
		}
		return a.usage(codeUsage, unknownCommand(args), "")
	default:
		return a.usage(codeUsage, fmt.Errorf("cannot help with %q: one command at a time", strings.Join(args, " ")), "")
	}
}

// unknownCommand names the command that was meant, as far as that can be guessed.
func unknownCommand(args []string) error {
	name := args[0]
	err := fmt.Errorf("cannot run %q: no such command", name)
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	switch near := nearest(name, names); {
	case name == "run" || name == "launch" || name == "start":
		return hinted{err, "rdzv exec -- PROGRAM runs a program"}
	case near != "":
		return hinted{err, fmt.Sprintf("did you mean \"rdzv %s\"?", near)}
	case strings.HasPrefix(name, "-"), slices.Contains(args, "--"):
		return hinted{err, "the command comes first: rdzv exec " + strings.Join(args, " ")}
	}
	return err
}
