package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// How many files an agent may have to open, with room to spare: by itself, for
// each of its workers, and for each agent that comes to its store.
const (
	ownFiles    = 64
	workerFiles = 6
	memberFiles = 1
)

// enoughFiles tells whether this agent may open as many files as it needs.
func (j *job) enoughFiles() error {
	needed := ownFiles + workerFiles*j.slots
	if j.place.Rank <= 0 { // it may host the store
		needed += memberFiles * j.agents
	}
	return enoughFiles("start "+plural(j.slots, "worker"), needed)
}

// enoughFiles asks beforehand whether something can be done for which so many files
// are needed, for where no file can be opened any more the Go runtime and etcd end
// the process with a stack trace.
func enoughFiles(do string, needed int) error {
	limit, open := openFiles()
	if limit-open >= needed {
		return nil
	}
	return advice{
		fmt.Errorf("cannot %s: open-file limit too low: %d (%d needed)", do, limit, open+needed),
		fmt.Sprintf("ulimit -n %d raises the limit, where the hard limit (ulimit -Hn) allows it", max(1024, 2*needed)),
	}
}

// openFiles tells how many files this process may have open, and how many it has.
func openFiles() (limit, open int) {
	const unlimited = 1 << 30
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return unlimited, 0 // the limit is not known
	}
	limit = int(min(r.Cur, unlimited))
	list, err := os.ReadDir("/proc/self/fd")
	if errors.Is(err, unix.EMFILE) {
		return limit, limit
	}
	return limit, len(list)
}
