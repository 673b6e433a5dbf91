package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// How many files an agent may have to open, with room to spare: by itself, while
// it hosts the store and runs no worker, for each of its workers, and for each
// other agent that comes to its store.
const (
	ownFiles    = 64
	hostFiles   = 40
	workerFiles = 6
	memberFiles = 1
)

// enoughFiles tells whether this agent may open as many files as its workers need.
func (j *job) enoughFiles() error {
	return enoughFiles("start "+plural(j.slots, "worker"), ownFiles+workerFiles*j.slots)
}

// enoughFilesToHost tells whether all other agents can be connected to the store in
// this process at a time, though no worker may run then.
func (j *job) enoughFilesToHost() error {
	return enoughFiles("host the store for "+plural(j.agents, "agent"), hostFiles+memberFiles*(j.agents-1))
}

// enoughFilesForAll is the same while the workers run. It is nil where there are not
// enough for the workers alone, which enoughFiles tells.
func (j *job) enoughFilesForAll() error {
	if j.enoughFiles() != nil {
		return nil
	}
	do := fmt.Sprintf("host the store for %s and start %s", plural(j.agents, "agent"), plural(j.slots, "worker"))
	return enoughFiles(do, ownFiles+workerFiles*j.slots+memberFiles*(j.agents-1))
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
