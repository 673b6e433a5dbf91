package program

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// command is a program with its arguments, and its environment.
type command struct {
	argv []string
	env  map[string]string
}

// anyPython is the command that a shell script is assumed to run.
const anyPython = "python3"

var (
	pythonName = pattern{expr: `^python[0-9.]*t?$`}
	shellNames = []string{"sh", "bash", "dash", "ash", "ksh", "zsh"}
)

// maxNesting is how many scripts and calls of env may lead to the interpreter.
const maxNesting = 5

// findPython replaces the command by the python that it runs in the end, argv[0] being its file. A
// python that is a script, such as pyenv's, can run any other.
func (c *command) findPython(f files) bool {
	for range maxNesting {
		file := f.find(c.argv[0], c.env["PATH"])
		if file == "" {
			return false
		}
		name := path.Base(file)
		interpreter, isScript := parseShebang(f.read(file, maxShebang))
		isPython := pythonName.compiled().MatchString(name)
		switch {
		case isScript && isPython:
			return false
		case isScript:
			c.argv = slices.Concat(interpreter, []string{file}, c.argv[1:])
		case name == "env" && c.enterEnv():
		case slices.Contains(shellNames, name):
			c.argv = []string{anyPython}
		case isPython:
			c.argv = append([]string{file}, c.argv[1:]...)
			return true
		default: // it may run another command, as numactl does
			c.argv = fromPython(c.argv[1:])
		}
		if len(c.argv) == 0 {
			return false
		}
	}
	return false
}

// fromPython is the part of a command line that begins with a python.
func fromPython(words []string) []string {
	for i, word := range words {
		if pythonName.compiled().MatchString(path.Base(word)) {
			return words[i:]
		}
	}
	return nil
}

// maxShebang is how much of a script the kernel reads for its first line (BINPRM_BUF_SIZE).
const maxShebang = 256

// parseShebang returns the interpreter that a script names in its first line, and the argument if
// there is one: the kernel does not split it.
func parseShebang(head string) (interpreter []string, isScript bool) {
	line, isScript := strings.CutPrefix(head, "#!")
	if !isScript {
		return nil, false
	}
	line, _, _ = strings.Cut(line, "\n")
	line = strings.Trim(line, " \t\r")
	end := strings.IndexAny(line, " \t")
	if end < 0 {
		return []string{line}, true
	}
	return []string{line[:end], strings.TrimLeft(line[end:], " \t")}, true
}

// enterEnv replaces a call of env(1) by the command that it runs, unless it has options. Only -S is
// known, which scripts need.
func (c *command) enterEnv() bool {
	args := c.argv[1:]
	if len(args) > 0 {
		text, short := strings.CutPrefix(args[0], "-S")
		text, long := strings.CutPrefix(text, "--split-string=")
		if short || long {
			if strings.ContainsAny(text, `"'\$#`) {
				return false // env would interpret them
			}
			args = slices.Concat(strings.Fields(text), args[1:])
		}
	}
	env := map[string]string{}
	maps.Copy(env, c.env)
	for len(args) > 0 && strings.Contains(args[0], "=") {
		name, value, _ := strings.Cut(args[0], "=")
		env[name] = value
		args = args[1:]
	}
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return false
	}
	c.argv, c.env = args, env
	return true
}
