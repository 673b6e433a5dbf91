package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"rdzv/cmd/rdzv/internal/options"
	"rdzv/internal/hint"
)

// program is the program that the words after the flags of a command mean, with its arguments; nil
// if there are none. As under torchrun, a word that ends in .py is run by python, but not if it is
// a file that runs itself. Whether there is such a file is found later, with the problems of all
// nodes.
func (a *app) program(command string, words []string, o *options.Options) ([]string, error) {
	python := []string{"python3", "-u"} // unbuffered, as under torchrun
	torchrun := o.Torchrun
	switch {
	case len(words) == 0:
		return nil, nil
	case torchrun.Module:
		return slices.Concat(python, []string{"-m"}, words), nil
	case torchrun.NoPython && !torchrun.RunPath:
		return words, nil
	case strings.HasPrefix(words[0], "-") && words[0] != "-":
		return nil, hint.With(fmt.Errorf("cannot run %s: %q is after --, where the program must be",
			command, words[0]), "flags of rdzv are before --")
	case torchrun.RunPath,
		strings.HasSuffix(words[0], ".py") && !runsItself(words[0], o.Settings.Dir):
		return slices.Concat(python, words), nil
	}
	return words, nil
}

// runsItself tells whether a word is the path of an executable script that names its interpreter.
// Relative paths are relative to dir, "" being the working directory.
func runsItself(word, dir string) bool {
	if !strings.Contains(word, "/") {
		return false
	}
	if !filepath.IsAbs(word) {
		word = filepath.Join(dir, word)
	}
	info, err := os.Stat(word)
	if err != nil || !info.Mode().IsRegular() || unix.Access(word, unix.X_OK) != nil {
		return false
	}
	file, err := os.Open(word)
	if err != nil {
		return false
	}
	defer file.Close()
	start := make([]byte, 2)
	_, err = io.ReadFull(file, start)
	return err == nil && string(start) == "#!"
}
