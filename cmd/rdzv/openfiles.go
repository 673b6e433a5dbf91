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

// files is how many of them this agent may need.
func (j *job) files() int {
	n := ownFiles + workerFiles*j.slots
	if j.place.Rank <= 0 { // it may host the store
		n += memberFiles * j.agents
	}
	return n
}

// enoughFiles asks beforehand, for where no file can be opened any more the Go
// runtime and etcd end the process with a stack trace.
func enoughFiles(needed int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return nil // the limit is not known
	}
	open, err := os.ReadDir("/proc/self/fd")
	left := max(0, int(min(limit.Cur, 1<<30))-len(open))
	if errors.Is(err, unix.EMFILE) {
		left = 0
	}
	if left >= needed {
		return nil
	}
	return advice{
		fmt.Errorf("cannot run exec: of %d files that may be open at once %d are left, %d are needed", limit.Cur, left, needed),
		fmt.Sprintf("ulimit -n %d raises the limit, where the hard limit (ulimit -Hn) allows it", max(1024, 2*needed)),
	}
}
