package program

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"
	"strings"
)

// Script is the file of a program's own code. The zero value is none, or one of which nothing is
// known.
type Script struct {
	Name   string // as the command calls it: a file or a directory
	Digest string // of its contents, or its size if that is large; "" if there is no file
	Words  int    // how many words of the command lead to it; the others are its arguments
}

// StartError is why an interpreter cannot read its script.
type StartError struct {
	Text    string
	Missing string // the script that does not exist, as the command calls it; "" for none
}

func (e *StartError) Error() string { return "cannot start: " + e.Text }

// runs notes that an interpreter runs a file as a script, which the command calls name, with the
// arguments rest: the first script of the command, unless another program may see other files. The
// code of a program that was found in PATH is not the user's own.
func (c *command) runs(f files, name, file string, rest []string) {
	if c.unknown != "" || c.script.Words > 0 {
		return
	}
	isOwn := name == file || strings.Contains(name, "/")
	file = f.real(file)
	if err := f.checkScript(name, file); err != nil {
		c.err = err
	}
	c.script.Words = c.given - len(rest)
	if isOwn {
		c.script.Name, c.script.Digest = name, f.digest(file)
	}
}

// checkScript returns why an interpreter cannot read a script; nil if it can, or if that is not
// known. A directory and a zip file are valid scripts for python.
func (f files) checkScript(name, file string) *StartError {
	if strings.HasPrefix(file, "/dev/") || strings.HasPrefix(file, "/proc/") {
		return nil // not the same file in another process
	}
	in := ""
	if !path.IsAbs(name) {
		in = fmt.Sprintf(" in %q", f.dir)
	}
	_, err := fs.Stat(f.fsys, f.name(file))
	if err == nil && f.isFile(file) {
		var open fs.File
		if open, err = f.fsys.Open(f.name(file)); err == nil {
			open.Close()
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text := fmt.Sprintf("script %q is missing%s", name, in)
		return &StartError{Text: text, Missing: name}
	case errors.Is(err, fs.ErrPermission):
		text := fmt.Sprintf("script %q%s cannot be read: permission denied", name, in)
		return &StartError{Text: text}
	}
	return nil
}

// maxDigest is the size up to which the content of a script is read.
const maxDigest = 1 << 20

// digest is the CRC-32 of a script, its size if that is more than maxDigest, and "" if it cannot be
// read; of a directory it is that of the file that python runs. A cryptographic digest of 1 MiB
// would take 1.3 ms, in each agent of a node.
func (f files) digest(script string) string {
	if f.isDir(script) {
		script = path.Join(script, "__main__.py")
	}
	info, err := fs.Stat(f.fsys, f.name(script))
	text := f.read(script, maxDigest)
	switch {
	case err != nil || text == "":
		return ""
	case info.Size() > maxDigest:
		return fmt.Sprintf("%d bytes", info.Size())
	}
	return fmt.Sprintf("crc32:%08x", crc32.ChecksumIEEE([]byte(text)))
}
