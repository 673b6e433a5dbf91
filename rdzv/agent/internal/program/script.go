package program

import (
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// interpreted is a word of a command line that runs python or a shell: the name of the interpreter,
// with or without its directory, or a python file.
var interpreted = regexp.MustCompile(`^(?:.*/)?(?:(?:python|pypy)[0-9.]*t?|(?:ba|da|a|k|z)?sh|.*\.py)$`)

// IsScript tells whether a command seems to run a python program or a shell script: file, which is
// executed, is a script, or one of the words is an interpreter, also behind a command that runs
// another one (env, numactl, uv run). fsys is the file system from its root.
func IsScript(fsys fs.FS, file string, words []string) bool {
	if slices.ContainsFunc(words, interpreted.MatchString) {
		return true
	}
	f, err := fsys.Open(strings.TrimPrefix(path.Clean(file), "/"))
	if err != nil {
		return false
	}
	defer f.Close()
	var begin [2]byte
	_, err = io.ReadFull(f, begin[:])
	return err == nil && string(begin[:]) == "#!"
}
