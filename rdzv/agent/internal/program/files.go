package program

import (
	"io"
	"io/fs"
	"path"
	"strings"
)

// files reads the file system of a process with the working directory dir.
type files struct {
	fsys fs.FS
	dir  string
}

// abs is a file relative to the working directory, as an absolute path.
func (f files) abs(file string) string {
	if !path.IsAbs(file) {
		file = path.Join("/", f.dir, file)
	}
	return path.Clean(file)
}

// name is the name of a file in fsys.
func (f files) name(file string) string {
	if name := f.abs(file)[1:]; name != "" {
		return name
	}
	return "."
}

func (f files) isDir(file string) bool {
	info, err := fs.Stat(f.fsys, f.name(file))
	return err == nil && info.IsDir()
}

func (f files) isFile(file string) bool {
	info, err := fs.Stat(f.fsys, f.name(file))
	return err == nil && info.Mode().IsRegular()
}

// read returns the beginning of a regular file, at most so many bytes; "" if it cannot be read. It
// does not open other files, which could block or have an effect, such as named pipes.
func (f files) read(file string, most int64) string {
	if !f.isFile(file) {
		return ""
	}
	open, err := f.fsys.Open(f.name(file))
	if err != nil {
		return ""
	}
	defer open.Close()
	text, err := io.ReadAll(io.LimitReader(open, most))
	if err != nil {
		return ""
	}
	return string(text)
}

// list returns the names in a directory, sorted; none if it cannot be read.
func (f files) list(dir string) []string {
	entries, err := fs.ReadDir(f.fsys, f.name(dir))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// maxLinks is how many symbolic links in sequence Linux follows.
const maxLinks = 40

// real is a path without symbolic links, as far as it exists.
func (f files) real(file string) string {
	if !path.IsAbs(file) {
		file = f.dir + "/" + file
	}
	done, rest := "/", file
	for links := 0; rest != ""; {
		name, after, _ := strings.Cut(rest, "/")
		next := path.Join(done, name)
		to, err := fs.ReadLink(f.fsys, f.name(next))
		if err != nil { // it is not a link, or does not exist
			done, rest = next, after
			continue
		}
		if links++; links > maxLinks {
			return path.Clean(file)
		}
		if path.IsAbs(to) {
			done = "/"
		}
		rest = to + "/" + after
	}
	return done
}

// find returns the file that is executed for the name of a program; "" if there is none.
func (f files) find(name, pathVariable string) string {
	if strings.Contains(name, "/") {
		return f.executable(name)
	}
	for dir := range strings.SplitSeq(pathVariable, ":") {
		if file := f.executable(path.Join(f.abs(dir), name)); name != "" && file != "" {
			return file
		}
	}
	return ""
}

// executable is the absolute path of a file that somebody may execute; "" if nobody may.
func (f files) executable(file string) string {
	info, err := fs.Stat(f.fsys, f.name(file))
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return ""
	}
	return f.abs(file)
}
