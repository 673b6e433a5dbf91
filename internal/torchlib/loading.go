// Package torchlib tells what a process does with the libraries of torch, as the kernel shows it.
package torchlib

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

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

// MainThread tells what CPU time the main thread of a process has used, and for how long it was
// ready to run and had no core; 0 if the kernel does not tell.
func MainThread(proc fs.FS, pid int) (used, waited time.Duration) {
	// The first numbers of schedstat, in ns (the kernel's Documentation/scheduler/sched-stats.rst).
	text, _ := fs.ReadFile(proc, path.Join(strconv.Itoa(pid), "schedstat"))
	words := strings.Fields(string(text))
	if len(words) < 2 {
		return 0, 0
	}
	return nanoseconds(words[0]), nanoseconds(words[1])
}

func nanoseconds(text string) time.Duration {
	n, _ := strconv.ParseInt(text, 10, 64) // the kernel prints numbers
	return time.Duration(n)
}
