package program

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"strings"

	"rdzv/internal/shell"
)

// Script is the file of a program's own code. The zero value is none, or one of which nothing is
// known.
type Script struct {
	Name   string // as the command calls it: a file, a directory, or a module
	Digest string // of its contents, or its size if that is large; "" if there is no file
	Words  int    // how many words of the command lead to it; the others are its arguments
}

// StartError is why an interpreter or its script cannot start.
type StartError struct {
	Text    string
	Missing bool   // something does not exist; otherwise it cannot be read
	Setting string // the variable that could change that, such as PATH; "" for none
	Script  string // the script that does not exist, as the command calls it; "" for none
}

func (e *StartError) Error() string { return "cannot start: " + e.Text }

// fail notes why the command cannot start, unless another program sees other files.
func (c *command) fail(err *StartError) {
	if err != nil && !c.opaque && c.err == nil {
		c.err = err
	}
}

// runs notes that an interpreter runs a file as a script with the arguments rest. The code of a
// program that was found in PATH is not the user's own.
func (c *command) runs(f files, file string, rest []string) {
	if c.opaque || !lexical(file) {
		return
	}
	name := file
	if file == c.executed {
		name = c.executedAs
	}
	c.fail(f.checkScript(name, file))
	c.script.Words = c.given - len(rest)
	if file != c.executed || strings.Contains(name, "/") {
		c.script.Name, c.script.Digest = name, f.digest(f.codeOf(file))
	}
}

// missing is why the command, which an env or a script calls, cannot be executed; nil if that is
// not known.
func (c *command) missing(f files) *StartError {
	name, by := c.argv[0], ""
	if c.executed != "" {
		by = fmt.Sprintf(", which the first line of %q names,", c.executedAs)
	}
	PATH, hasPath := c.env["PATH"]
	switch {
	case name == "" || strings.Contains(name, "/") && f.exists(name):
	case strings.Contains(name, "/"):
		return &StartError{Text: fmt.Sprintf("%q%s is missing", name, by), Missing: true}
	case hasPath:
		text := fmt.Sprintf("%q%s is not in PATH %s", name, by, shell.Path(PATH))
		return &StartError{Text: text, Missing: true, Setting: "PATH"}
	}
	return nil
}

// checkScript returns why an interpreter cannot read a script; nil if it can, or if that is not
// known. A directory and a zip file are valid scripts for python.
func (f files) checkScript(name, file string) *StartError {
	abs := f.abs(file)
	if strings.HasPrefix(abs, "/dev/") || strings.HasPrefix(abs, "/proc/") {
		return nil // not the same file in another process
	}
	in := ""
	if !path.IsAbs(name) {
		in = fmt.Sprintf(" in %q", f.dir)
	}
	info, err := fs.Stat(f.fsys, f.name(file))
	if err == nil && info.Mode().IsRegular() {
		var open fs.File
		if open, err = f.fsys.Open(f.name(file)); err == nil {
			open.Close()
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text := fmt.Sprintf("script %q is missing%s", name, in)
		return &StartError{Text: text, Missing: true, Script: name}
	case errors.Is(err, fs.ErrPermission):
		text := fmt.Sprintf("script %q%s cannot be read: permission denied", name, in)
		return &StartError{Text: text}
	}
	return nil
}

// codeOf is the file with the code of a script, which can be a directory.
func (f files) codeOf(script string) string {
	if f.isDir(script) {
		return path.Join(f.abs(script), "__main__.py")
	}
	return script
}

// maxDigest is the size up to which the content of a script is read.
const maxDigest = 1 << 20

// digest is the CRC-32 of a regular file, its size if that is more than maxDigest, and "" if it
// cannot be read. A cryptographic digest of 1 MiB would take 1.3 ms, in each agent of a node.
func (f files) digest(file string) string {
	info, err := fs.Stat(f.fsys, f.name(file))
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	if info.Size() > maxDigest {
		return fmt.Sprintf("%d bytes", info.Size())
	}
	open, err := f.fsys.Open(f.name(file))
	if err != nil {
		return ""
	}
	defer open.Close()
	sum := crc32.NewIEEE()
	if _, err := io.Copy(sum, io.LimitReader(open, maxDigest)); err != nil {
		return ""
	}
	return fmt.Sprintf("crc32:%08x", sum.Sum32())
}

// lexical tells whether a file is the same one if ".." and the name before it are removed, which is
// not so if that name is a link.
func lexical(file string) bool {
	named := false
	for name := range strings.SplitSeq(file, "/") {
		if name == ".." && named {
			return false
		}
		named = named || name != "" && name != "." && name != ".."
	}
	return true
}
