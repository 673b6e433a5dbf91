package agent

import (
	"slices"
	"strings"

	"rdzv/internal/shell"
	"rdzv/wrap"
)

// shellHint is what to try if no program has this name because it is something that only a shell
// understands: a quoted command line, an assignment, a command of the shell itself; "" if it is not.
func shellHint(program, environ []string) string {
	line := strings.TrimRight(program[0]+" "+shell.Line(program[1:]...), " ")
	words := strings.Fields(program[0])
	if len(words) == 0 {
		return ""
	}
	name, _, assignment := strings.Cut(words[0], "=")
	switch {
	case slices.Contains(shellCommands, words[0]),
		len(words) > 1 && strings.ContainsAny(program[0], "|&;<>$`"):
		interpreter := "sh"
		if words[0] == "source" {
			interpreter = "bash"
		}
		return "only a shell can run this: rdzv exec -- " + shell.Line(interpreter, "-c", line)
	case assignment && name != "" && !strings.Contains(name, "/"):
		return "set a variable with env: rdzv exec -- env " + line
	case len(words) > 1:
		if _, err := wrap.Find(words[0], environ, ""); err == nil {
			return "omit the quotes around the program and its arguments: rdzv exec -- " + line
		}
	}
	return ""
}

// shellCommands are commands of shells that are not programs.
var shellCommands = []string{
	".", "cd", "eval", "exec", "export", "pushd", "set", "source", "ulimit", "umask", "unset",
}
