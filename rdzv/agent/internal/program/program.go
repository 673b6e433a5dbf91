// Package program tells what a worker's program uses: the python that runs it, the script, and the
// torch that is installed for this python. It reads files only and runs nothing, so that it costs
// less than 1 ms. What files do not tell for certain is unknown: "rdzv check" runs the python.
package program

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Program is the result of [Inspect]. The zero value is a program of which nothing is known, or one
// that does not use python.
type Program struct {
	Python  string // file of the interpreter, as it is called
	Version string // of the interpreter, such as "3.11"
	Torch   Torch
	Script  Script
	// Certain says that this interpreter runs the program, and not one that a shell script or
	// another command may choose, and that its libraries were found.
	Certain bool
	// Unknown is why the interpreter or its libraries are not known for certain; "" if they are, or
	// if the program seems to run none.
	Unknown string
	// Err is why the script cannot be read, a *[StartError]; nil if nothing is known to prevent it.
	Err error
}

// Inspect inspects the program argv, which is executed with the variables env in the directory dir:
// a python, a script, or a shell or another command that is assumed to run a python. The python3 of
// PATH is also inspected if argv is empty. fsys is the file system from its root; it should be able
// to read symbolic links ([fs.ReadLinkFS]).
func Inspect(fsys fs.FS, argv []string, env map[string]string, dir string) Program {
	f := files{fsys, "/"}
	f.dir = f.real(dir)
	if len(argv) == 0 {
		argv = []string{anyPython}
	}
	c := command{argv: argv, env: env, given: len(argv)}
	found := c.findPython(f)
	result := Program{Script: c.script, Err: c.err, Unknown: c.unknown}
	if !found {
		return result
	}
	p := newPython(f, c)
	if result.Unknown == "" && p.prefix == "" {
		result.Unknown = "the libraries of " + p.file + " were not found"
	}
	result.Python, result.Version, result.Torch = p.file, p.version, p.findTorch()
	result.Certain = result.Unknown == ""
	return result
}

// IsScript tells whether a command seems to run a python program or a shell script: file, which is
// executed, is a script, or one of the words is an interpreter or a python file, also behind a
// command that runs another one (env, numactl, uv run). fsys is the file system from its root.
func IsScript(fsys fs.FS, file string, words []string) bool {
	isInterpreted := func(word string) bool {
		return isPython(word) || isShell(word) || strings.HasSuffix(word, ".py")
	}
	return slices.ContainsFunc(words, isInterpreted) || files{fsys, "/"}.read(file, 2) == "#!"
}

// IsPython tells whether a file in a directory is, when links are followed, an interpreter or a
// python file.
func IsPython(fsys fs.FS, file, dir string) bool {
	real := files{fsys, dir}.real(file)
	return isPython(real) || strings.HasSuffix(real, ".py")
}

// Name is how people call a program: the name of its script without .py, its module, or else its
// own name. Only its words are known: a script that runs another one has its own name.
func Name(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	script, python := argv[0], fromPython(argv)
	switch o := parseOptions(python[min(1, len(python)):]); {
	case o.script != "":
		script = o.script
	case o.module != "":
		return o.module
	case isShell(argv[0]) && shellScript(argv[1:]) != "":
		script = shellScript(argv[1:])
	}
	return strings.TrimSuffix(path.Base(script), ".py")
}
