package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rdzv/internal/shell"
	"rdzv/wrap"
)

const helpHelp = `Usage: rdzv help [COMMAND|TOPIC]

    rdzv help exec
    rdzv help network

Print an overview of rdzv, or the help of COMMAND. The topics network, restarts
and etcd are about some of the flags of exec.

Exit status:
    0        printed
    2        wrong usage
`

const overview = `Usage: rdzv COMMAND [flags] [-- PROGRAM [ARG]...]

    mpirun -np 4 rdzv exec -- python3 main.py
    rdzv exec --nodes 2 --nproc-per-node 8 -- python3 main.py      on every node
    rank=$(rdzv get-rank)

Run a PyTorch program as one distributed job, under any launcher or without one.

{commands}

"rdzv help COMMAND" prints the flags, and the variables that can hold them.
The manual page: "rdzv man". Completion: "rdzv completion bash" (zsh, fish).
`

func (a *app) help(args []string) int {
	switch len(args) {
	case 0:
		return a.print(overviewHelp())
	case 1:
		if c, ok := find(args[0]); ok {
			return a.print(c.help())
		}
		if t, ok := findTopic(args[0]); ok {
			return a.print(t.help())
		}
		return a.usage(a.unknownCommand(args), "")
	default:
		err := fmt.Errorf("cannot print help for %q: give one command", strings.Join(args, " "))
		return a.usage(err, "")
	}
}

// overviewHelp is the overview with the commands that it lists.
func overviewHelp() string {
	var list strings.Builder
	for _, c := range listed() {
		fmt.Fprintf(&list, "    %-11s%s\n", c.name, c.summary)
	}
	return strings.Replace(overview, "{commands}\n", list.String(), 1)
}

// help is the help of a command as it is printed.
func (c command) help() string {
	var flags strings.Builder
	for i, g := range c.flags {
		if i > 0 && g.title != "" {
			flags.WriteString("\n")
		}
		flags.WriteString(g.help())
	}
	return strings.Replace(c.prose, "{flags}\n", flags.String(), 1)
}

// unknownCommand suggests the command that was probably meant.
func (a *app) unknownCommand(args []string) error {
	name := args[0]
	_, notFound := wrap.Find(name, a.environ, "")
	err := fmt.Errorf("cannot run %q: no such command", name)
	switch near := nearestCommand(name); {
	case name == "run" || name == "launch" || name == "start":
		return hinted{err, "rdzv exec " + cmp.Or(shell.Line(args[1:]...), "-- PROGRAM [ARG]...")}
	case withoutTorchrun(args) != "":
		return hinted{err, withoutTorchrun(args)}
	case near != "":
		return hinted{err, fmt.Sprintf("did you mean \"rdzv %s\"?", near)}
	case strings.HasPrefix(name, "-"), slices.Contains(args, "--"):
		return hinted{err, "put the command first: rdzv exec " + shell.Line(args...)}
	case strings.HasSuffix(name, ".py"):
		return hinted{err, "rdzv exec -- python3 " + shell.Line(args...)}
	case notFound == nil:
		return hinted{err, "rdzv exec -- " + shell.Line(args...)}
	}
	return err
}

// nearestCommand is the command with a similar name, or whose name has this one in it: get-rank for
// rank.
func nearestCommand(name string) string {
	for _, command := range names(listed()) {
		if len(name) > 2 && strings.Contains(command, name) {
			return command
		}
	}
	return nearest(name, names(listed()))
}

// nearest is the word most similar to a mistyped one; "" if each differs by three or more edits, or
// by more than half of the letters unless the first one is the same: env for evn.
func nearest(word string, words []string) string {
	best, least := "", min(3, (len(word)+1)/2+1)
	for _, w := range words {
		if d := distance(word, w); d < least && (2*d <= len(word) || word[0] == w[0]) {
			best, least = w, d
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
