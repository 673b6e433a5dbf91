package program

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// command is a program with its arguments, and its environment. The other fields are what is found
// out on the way to its interpreter.
type command struct {
	argv []string
	env  map[string]string

	executed   string // file of the last script that was executed by its first line
	executedAs string // how the command before it calls that script
	opaque     bool   // another program decides what runs, and with which files
	unknown    string // why its python is not known; "" if it is, or if it runs none
	given      int    // how many words there were at first
	script     Script
	err        error // why it cannot start
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
// python that is a script can run any other, except pyenv's.
func (c *command) findPython(f files) bool {
	c.given = len(c.argv)
	for nesting := range maxNesting {
		file := f.find(c.argv[0], c.env["PATH"])
		if file == "" {
			if nesting > 0 { // the caller looks for the first one
				c.fail(c.missing(f))
			}
			return false
		}
		name := path.Base(file)
		interpreter, isScript := parseShebang(f.read(file, maxShebang))
		isPython := pythonName.compiled().MatchString(name)
		switch {
		case isScript && isPython:
			text := f.read(file, maxText)
			isShim := strings.Contains(text, pyenvShim)
			if own := f.pyenvProgram(text, name, c.env); isShim && own != "" {
				c.argv = append([]string{own}, c.argv[1:]...)
				continue
			}
			if o := parseOptions(c.argv[1:]); isShim && o.script != "" {
				c.runs(f, o.script, o.rest)
			}
			c.unknown = file + " is a script that chooses the python"
			return false
		case isScript:
			c.executed, c.executedAs = file, c.argv[0]
			c.argv = slices.Concat(interpreter, []string{file}, c.argv[1:])
		case name == "env" && c.enterEnv():
		case slices.Contains(shellNames, name):
			c.enterShell(f)
		case isPython:
			c.argv = append([]string{file}, c.argv[1:]...)
			return true
		default: // it may run another command, as numactl does
			rest := fromPython(c.argv[1:])
			if !onlyRuns(name, c.argv[1:len(c.argv)-len(rest)]) {
				c.opaque, c.unknown = true, name+" can run any python"
			}
			c.argv = rest
		}
		if len(c.argv) == 0 {
			return false
		}
	}
	return false
}

// enterShell notes the script that a shell runs, and replaces the shell by the python that this
// script is assumed to run.
func (c *command) enterShell(f files) {
	if script, rest := parseShell(c.argv[1:]); script != "" {
		if !strings.Contains(script, "/") && !f.exists(script) { // then bash looks in PATH
			if file := f.readableIn(c.env["PATH"], script); file != "" {
				script = file
			}
		}
		c.runs(f, script, rest)
	}
	c.argv, c.opaque, c.unknown = []string{anyPython}, true, "a shell script can run any python"
}

// pyenvShim is in the scripts of pyenv that run a python with their own arguments.
const pyenvShim = `pyenv" exec "$program" "$@"`

// fromPython is the part of a command line that begins with a python.
func fromPython(words []string) []string {
	for i, word := range words {
		if pythonName.compiled().MatchString(path.Base(word)) {
			return words[i:]
		}
	}
	return nil
}

// transparent are programs that run a command with the same files and user, in the same directory.
var transparent = []string{
	"chrt", "ionice", "nice", "nohup", "numactl", "setsid", "stdbuf", "taskset", "timeout",
}

var optionWord = pattern{expr: `^[-0-9]`}

// onlyRuns tells whether a program runs the command that follows options, and that this follows
// nothing else: options have numbers as values, or none.
func onlyRuns(name string, options []string) bool {
	isOther := func(word string) bool { return !optionWord.compiled().MatchString(word) }
	return slices.Contains(transparent, name) && !slices.ContainsFunc(options, isOther)
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
