// Package taskfiles is the file system as other tasks of the launcher on this node see it.
package taskfiles

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"rdzv/envmap"
)

// Root is the file system as one task sees it: /proc/self is the task's.
type Root struct {
	Files fs.FS
	PID   int // of the task's process
	// MayAccess tells whether the task may read and write a device file; nil is as this process may.
	MayAccess func(name string) bool
}

func (r Root) name(name string) string {
	if rest, is := strings.CutPrefix(name, "proc/self"); is && (rest == "" || rest[0] == '/') {
		return "proc/" + strconv.Itoa(r.PID) + rest
	}
	return name
}

// Open opens a file of the task's /proc/self, or any other.
func (r Root) Open(name string) (fs.File, error) { return r.Files.Open(r.name(name)) }

func (r Root) ReadFile(name string) ([]byte, error) { return fs.ReadFile(r.Files, r.name(name)) }

func (r Root) ReadDir(name string) ([]fs.DirEntry, error) {
	return fs.ReadDir(r.Files, r.name(name))
}

// ReadLink and Lstat implement fs.ReadLinkFS.
func (r Root) ReadLink(name string) (string, error) { return fs.ReadLink(r.Files, r.name(name)) }

func (r Root) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(r.Files, r.name(name)) }

// Accessible implements envmap.Accessible.
func (r Root) Accessible(name string) bool {
	if r.MayAccess != nil {
		return r.MayAccess(name)
	}
	files, ok := r.Files.(envmap.Accessible)
	return !ok || files.Accessible(name)
}

// Proc is /proc as this process and the tasks together may read it: what the kernel shows of a
// process in detail it may show only to its ancestors (Yama).
type Proc struct {
	Files fs.FS
	// ReadBy read a file below /proc, with an absolute path, as each of the tasks may.
	ReadBy []func(name string) ([]byte, error)
}

func (p Proc) Open(name string) (fs.File, error)          { return p.Files.Open(name) }
func (p Proc) ReadLink(name string) (string, error)       { return fs.ReadLink(p.Files, name) }
func (p Proc) Lstat(name string) (fs.FileInfo, error)     { return fs.Lstat(p.Files, name) }
func (p Proc) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(p.Files, name) }

// ReadFile reads a file, by a task if this process may not.
func (p Proc) ReadFile(name string) ([]byte, error) {
	text, err := fs.ReadFile(p.Files, name)
	for _, read := range p.ReadBy {
		if !errors.Is(err, fs.ErrPermission) {
			break
		}
		text, err = read("/proc/" + name)
	}
	return text, err
}
