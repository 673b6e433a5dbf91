package program

import (
	"io/fs"
	"slices"
)

// interpreted is a word of a command line that runs python or a shell: the name of the interpreter,
// with or without its directory, or a python file. It has more names than findPython, which must be
// certain.
var interpreted = pattern{expr: `^(?:.*/)?(?:(?:python|pypy)[0-9.]*t?|(?:ba|da|a|k|z)?sh|.*\.py)$`}

// IsScript tells whether a command seems to run a python program or a shell script: file, which is
// executed, is a script, or one of the words is an interpreter, also behind a command that runs
// another one (env, numactl, uv run). fsys is the file system from its root.
func IsScript(fsys fs.FS, file string, words []string) bool {
	if slices.ContainsFunc(words, interpreted.compiled().MatchString) {
		return true
	}
	_, isScript := parseShebang(files{fsys, "/"}.read(file, maxShebang))
	return isScript
}
