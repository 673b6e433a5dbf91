// Package torchlib tells what a process does with the libraries of torch, as the kernel shows it.
package torchlib

import (
	"io/fs"
	"path"
	"strings"

	"rdzv/internal/procfs"
)

// Loading is how far a process has come in loading torch.
type Loading int

const (
	NotLoading Loading = iota
	Mapped             // the dynamic loader has mapped libtorch_python.so
	// Relocated: it has also relocated it, and before it the libraries on which it depends. It has
	// then made the part of it read-only that it changes only for that (RELRO).
	Relocated
)

// LoadingOf tells how far a process has come; NotLoading if this process may not trace it. With
// 1600 mappings it takes 1 ms.
func LoadingOf(proc fs.FS, pid int) (l Loading) {
	list, _ := procfs.Mappings(proc, pid)
	for i, m := range list {
		if !strings.HasPrefix(path.Base(m.File), "libtorch_python.so") {
			continue
		}
		l = max(l, Mapped)
		if i > 0 && m.Perms == "rw-p" && list[i-1].Perms == "r--p" && continues(list[i-1], m) {
			l = Relocated
		}
	}
	return l
}

// continues tells whether b has been one mapping with a.
func continues(a, b procfs.Mapping) bool {
	return a.File == b.File && a.End == b.Start && a.Offset+(a.End-a.Start) == b.Offset
}
