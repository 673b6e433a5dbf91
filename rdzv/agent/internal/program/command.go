package program

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// command is a program with its arguments, and its environment. The other fields are what is found
// out on the way to its interpreter.
type command struct {
	argv  []string
	env   map[string]string
	given int // how many words there were at first

	unknown string // why its python is not known; "" if it is, or if it runs none
	script  Script
	err     error // why it cannot start
}

// anyPython is the command that a shell script is assumed to run.
const anyPython = "python3"

var pythonName = pattern{expr: `^python[0-9.]*t?$`}

// isPython and isShell tell whether a file or a word is called like an interpreter.
func isPython(word string) bool { return pythonName.compiled().MatchString(path.Base(word)) }

func isShell(word string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "ksh", "zsh"}, path.Base(word))
}

// maxNesting is how many programs may lead to the interpreter, such as a script and env.
const maxNesting = 5

// pyenvShim is in the scripts of pyenv that run a python with their own arguments.
const pyenvShim = `pyenv" exec "$program" "$@"`

// findPython replaces the command by the python that it runs in the end, argv[0] being its file. It
// notes the script. A python that is a script can run any other.
func (c *command) findPython(f files) bool {
	for range maxNesting {
		file := f.find(c.argv[0], c.env["PATH"])
		if file == "" {
			return false
		}
		interpreter, isScript := parseShebang(f.read(file, maxShebang))
		switch {
		case isScript && isPython(file):
			if strings.Contains(f.read(file, maxText), pyenvShim) {
				c.runsPython(f)
			}
			c.unsure(file + " is a script that chooses the python")
			return false
		case isScript:
			c.runs(f, c.argv[0], file, c.argv[1:])
			c.argv = slices.Concat(interpreter, []string{file}, c.argv[1:])
		case isShell(file):
			script := shellScript(c.argv[1:]) // without a slash, bash may find it in PATH
			if script != "" && (strings.Contains(script, "/") || f.isFile(script)) {
				c.runs(f, script, script, c.argv[2:])
			}
			c.argv = []string{anyPython}
			c.unsure("a shell script can run any python")
		case isPython(file):
			c.argv = append([]string{file}, c.argv[1:]...)
			c.runsPython(f)
			return true
		default: // it may run another command, as numactl does
			name, rest := path.Base(file), fromPython(c.argv[1:])
			if len(rest) == 0 {
				return false
			}
			if name != "env" || !onlySets(c.argv[1:len(c.argv)-len(rest)]) {
				c.unsure(name + " can run any python")
			}
			c.argv = rest
		}
	}
	return false
}

// unsure notes why the python is not known, unless a program before has made it so.
func (c *command) unsure(why string) { c.unknown = cmp.Or(c.unknown, why) }

// runsPython notes what a python runs that has these arguments.
func (c *command) runsPython(f files) {
	switch o := parseOptions(c.argv[1:]); {
	case o.script != "":
		c.runs(f, o.script, o.script, o.rest)
	case c.unknown == "" && c.script.Words == 0:
		c.script.Words = c.given - len(o.rest)
	}
}

// shellScript is the script that a shell with these arguments runs; "" if there is an option before
// it, or none.
func shellScript(args []string) string {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], "+") {
		return ""
	}
	return args[0]
}

// fromPython is the part of a command line that begins with a python.
func fromPython(words []string) []string {
	if i := slices.IndexFunc(words, isPython); i >= 0 {
		return words[i:]
	}
	return nil
}

// onlySets tells whether words before a command of env(1) only set variables that do not change
// which python it is, and which modules it finds.
func onlySets(words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool {
		name, _, sets := strings.Cut(word, "=")
		return !sets || name == "PATH" || name == "HOME" || strings.HasPrefix(name, "PYTHON")
	})
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
