// Package program tells what a worker's program uses: the python that runs it, and the torch that
// this python would import. It reads files only and runs nothing, so that it costs less than 1 ms
// and is sometimes wrong: code that a program or a site hook executes can change everything. What
// cannot be told is left empty.
package program

import "io/fs"

// Program is what is known of a program. The zero value is a program of which nothing is known, or
// one that does not use python.
type Program struct {
	Python  string // file of the interpreter, as it is called
	Version string // of the interpreter, such as "3.11"
	Torch   Torch
}

// Inspect inspects the program argv, which is executed with the variables env in the directory dir:
// a python, also behind a command that runs it, a script, or a shell, which is assumed to run the
// python3 of PATH. That is also inspected if argv is empty. fsys is the file system from its root; it should be able to read
// symbolic links ([fs.ReadLinkFS]).
func Inspect(fsys fs.FS, argv []string, env map[string]string, dir string) Program {
	f := files{fsys, dir}
	if len(argv) == 0 {
		argv = []string{anyPython}
	}
	c := command{argv, env}
	if !c.findPython(f) {
		return Program{}
	}
	p := newPython(f, c)
	return Program{Python: p.file, Version: p.version, Torch: p.findTorch()}
}
