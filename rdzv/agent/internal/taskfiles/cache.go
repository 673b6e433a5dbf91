package taskfiles

import (
	"io/fs"
	"strings"

	"rdzv/envmap"
)

// Cache is a file system of which each file and directory is read once, for as long as nothing in
// it matters that changes. Files of processes are read each time. It is for one goroutine.
type Cache struct {
	Files fs.FS
	texts map[string]read[[]byte]
	dirs  map[string]read[[]fs.DirEntry]
}

// read is what has been read, or why it could not be.
type read[T any] struct {
	content T
	err     error
}

func (c *Cache) Open(name string) (fs.File, error) { return c.Files.Open(name) }

func (c *Cache) ReadFile(name string) ([]byte, error) {
	return once(&c.texts, name, func() ([]byte, error) { return fs.ReadFile(c.Files, name) })
}

func (c *Cache) ReadDir(name string) ([]fs.DirEntry, error) {
	return once(&c.dirs, name, func() ([]fs.DirEntry, error) { return fs.ReadDir(c.Files, name) })
}

// ReadLink and Lstat implement fs.ReadLinkFS.
func (c *Cache) ReadLink(name string) (string, error)   { return fs.ReadLink(c.Files, name) }
func (c *Cache) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(c.Files, name) }

// Accessible implements envmap.Accessible.
func (c *Cache) Accessible(name string) bool {
	files, ok := c.Files.(envmap.Accessible)
	return !ok || files.Accessible(name)
}

func once[T any](known *map[string]read[T], name string, get func() (T, error)) (T, error) {
	if strings.HasPrefix(name, "proc/") && !strings.HasPrefix(name, "proc/driver/") {
		return get()
	}
	r, ok := (*known)[name]
	if !ok {
		r.content, r.err = get()
		if *known == nil {
			*known = map[string]read[T]{}
		}
		(*known)[name] = r
	}
	return r.content, r.err
}
