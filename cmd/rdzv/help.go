package main

import (
	"fmt"
	"strings"
)

const helpHelp = `Usage: rdzv help [COMMAND]

Print what rdzv does, or what COMMAND does.
`

const overview = `Usage: rdzv COMMAND [flags] [-- PROGRAM [ARG]...]

Put before a PyTorch program, rdzv makes one job of its processes under any
launcher: it finds the peers, sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR,
MASTER_PORT and the device index, and stops all when one fails.

    mpirun -np 4 rdzv exec -- python3 main.py
    srun -N2 --ntasks-per-node=8 rdzv exec -- python3 main.py
    rdzv exec --nodes 2 --nproc-per-node 8 -- python3 main.py
    rank=$(rdzv get-rank)

Commands:
    exec       join the job, set the environment, run PROGRAM
    env        print the environment that exec would set
    get-rank   print the rank of this process
    token      print a new token
    version    print the version
    help       print the help of a command

Run "rdzv help COMMAND" for the flags of a command.
`

func (a *app) help(args []string) int {
	switch len(args) {
	case 0:
		return a.print(overview)
	case 1:
		if c, ok := find(args[0]); ok {
			return a.print(c.help)
		}
		return a.say.usage(codeUsage, unknownCommand(args[0]), "")
	default:
		return a.say.usage(codeUsage, fmt.Errorf("cannot help with %q: one command at a time", strings.Join(args, " ")), "")
	}
}

func unknownCommand(name string) error {
	err := fmt.Errorf("cannot run %q: no such command", name)
	if near := nearest(name); near != "" {
		return advice{err, fmt.Sprintf("did you mean %q?", "rdzv "+near)}
	}
	return err
}

// nearest is the command that shares the most with a mistyped name, if any does.
func nearest(name string) string {
	best, least := "", 3 // more than two slips are another word
	for _, c := range commands() {
		if d := distance(name, c.name); d < least {
			best, least = c.name, d
		}
	}
	return best
}

// distance is Levenshtein's: how many letters to insert, remove or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
