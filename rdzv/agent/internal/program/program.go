// Package program tells what a worker's program uses: the python that runs it, and the torch that
// this python would import. It reads files only and runs nothing, so that it costs less than 1 ms
// and is sometimes wrong: code that a program or a site hook executes can change everything. What
// cannot be told is left empty.
package program

import "io/fs"

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
	// Err is why the interpreter or its script cannot start, a *[StartError]; nil if nothing is
	// known to prevent it.
	Err error
}

// Inspect inspects the program argv, which is executed with the variables env in the directory dir:
// a python, also behind a command that runs it, a script, or a shell, which is assumed to run the
// python3 of PATH. That is also inspected if argv is empty. fsys is the file system from its root;
// it should be able to read symbolic links ([fs.ReadLinkFS]).
func Inspect(fsys fs.FS, argv []string, env map[string]string, dir string) Program {
	f := files{fsys, "/"}
	f.dir = f.real(dir)
	if len(argv) == 0 {
		argv = []string{anyPython}
	}
	c := command{argv: argv, env: env}
	if !c.findPython(f) {
		if len(c.argv) == 0 { // no word of the command is a python
			c.unknown = ""
		}
		return Program{Script: c.script, Err: c.err, Unknown: c.unknown}
	}
	p := newPython(f, c)
	switch o := p.options; {
	case o.script != "":
		c.runs(f, o.script, o.rest)
	case o.isModule:
		c.runsModule(p, o.module, o.rest)
	case !c.opaque:
		c.script.Words = c.given - len(o.rest)
	}
	if c.unknown == "" && p.prefix == "" {
		c.unknown = "the libraries of " + p.file + " were not found"
	}
	return Program{
		Unknown: c.unknown,
		Python:  p.file, Version: p.version, Torch: p.findTorch(),
		Script: c.script, Certain: !c.opaque && p.prefix != "", Err: c.err,
	}
}
