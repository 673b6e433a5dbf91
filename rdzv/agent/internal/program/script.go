package program

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// IsScript tells whether a command seems to run a python program or a shell script: file, which is
// executed, is a script, or one of the words is an interpreter or a python file, also behind a
// command that runs another one (env, numactl, uv run). fsys is the file system from its root.
func IsScript(fsys fs.FS, file string, words []string) bool {
	isInterpreted := func(word string) bool {
		name := path.Base(word)
		return pythonName.compiled().MatchString(name) || slices.Contains(shellNames, name) ||
			strings.HasSuffix(name, ".py")
	}
	return slices.ContainsFunc(words, isInterpreted) || files{fsys, "/"}.read(file, 2) == "#!"
}

// IsPython tells whether a file in a directory is, when links are followed, an interpreter or a
// python file.
func IsPython(fsys fs.FS, file, dir string) bool {
	name := path.Base(files{fsys, dir}.real(file))
	return pythonName.compiled().MatchString(name) || strings.HasSuffix(name, ".py")
}
