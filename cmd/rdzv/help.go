package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rdzv/cmd/rdzv/internal/advice"
	"rdzv/internal/hint"
	"rdzv/internal/shell"
	"rdzv/internal/spelling"
	"rdzv/wrap"
)

const helpHelp = `Usage: rdzv help [COMMAND]

    rdzv help exec

Print an overview of rdzv, or the help of COMMAND.

Exit status:
    0        printed
    2        wrong usage
`

const overview = `Usage: rdzv COMMAND [flags] [[--] PROGRAM [ARG]...]

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
		return a.print(overviewHelp(a.commands))
	case 1:
		if c, ok := a.commands.find(args[0]); ok {
			return a.print(c.help())
		}
		err := unknownCommand(a.commands, args, a.environ)
		if slices.Contains([]string{"network", "restarts", "etcd"}, args[0]) { // of earlier versions
			err = hint.With(fmt.Errorf("cannot print help for %q: there are no topics", args[0]),
				"rdzv exec --help has all flags in groups")
		}
		return a.usage(err, "")
	default:
		err := fmt.Errorf("cannot print help for %q: give one command", strings.Join(args, " "))
		return a.usage(err, "")
	}
}

// overviewHelp is the overview with the commands that it lists.
func overviewHelp(all commands) string {
	var list strings.Builder
	for _, c := range all {
		if !c.Hidden {
			fmt.Fprintf(&list, "    %-11s%s\n", c.Name(), c.Short)
		}
	}
	return strings.Replace(overview, "{commands}\n", list.String(), 1)
}

// unknownCommand suggests the command that was probably meant.
func unknownCommand(all commands, args, environ []string) error {
	name := args[0]
	_, notFound := wrap.Find(name, environ, "")
	err := fmt.Errorf("cannot run %q: no such command", name)
	switch near := nearestCommand(all, name); {
	case namedElsewhere(name) == "exec":
		return hint.With(err, "rdzv exec "+cmp.Or(shell.Line(args[1:]...), "-- PROGRAM [ARG]..."))
	case advice.WithoutTorchrun(args) != "":
		return hint.With(err, advice.WithoutTorchrun(args))
	case namedElsewhere(name) != "":
		return hint.With(err, fmt.Sprintf("did you mean \"rdzv %s\"?", namedElsewhere(name)))
	case near != "":
		return hint.With(err, fmt.Sprintf("did you mean \"rdzv %s\"?", near))
	case strings.HasPrefix(name, "-"), slices.Contains(args, "--"):
		return hint.With(err, "put the command first: rdzv exec "+shell.Line(args...))
	case strings.HasSuffix(name, ".py"):
		return hint.With(err, "rdzv exec -- python3 "+shell.Line(args...))
	case notFound == nil:
		return hint.With(err, "rdzv exec -- "+shell.Line(args...))
	}
	return err
}

// namedElsewhere is the command of rdzv that other tools call name; "" if there is none.
func namedElsewhere(name string) string {
	switch name {
	case "run", "launch", "start":
		return "exec"
	case "top", "ps", "list":
		return "status"
	case "kill", "cancel":
		return "stop"
	case "doctor":
		return "check"
	}
	return ""
}

// nearestCommand is the command with a similar name, or whose name has this one in it: get-rank for
// rank. It is never stop, which ends a job: whoever does not mean it should not read it here.
func nearestCommand(all commands, name string) string {
	names := slices.DeleteFunc(all.names(), func(command string) bool {
		return command == "stop"
	})
	for _, command := range names {
		if len(name) > 2 && strings.Contains(command, name) {
			return command
		}
	}
	return spelling.Nearest(name, names)
}
