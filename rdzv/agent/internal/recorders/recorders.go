// Package recorders prepares the flight recorders of torch's NCCL backend in the workers of an
// agent. Each process has a FIFO, which it makes itself: any byte makes it write what it has
// recorded. rdzv only says where the files are, and removes the FIFOs that are left.
package recorders

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/rdzv/agent/internal/host"
)

// Set are the flight recorders of the workers of an agent, in one attempt.
type Set struct {
	dir   string // where rdzv lets the workers put the files; "" if it does not
	fifos bool   // there can be FIFOs
	ranks []int  // of the workers
}

// Prepare is called by the goroutine that opens the logs, in their directory. It has FIFOs if the
// workers run Python.
func Prepare(dir string, python bool) *Set {
	s := &Set{}
	if s.dir, _ = filepath.Abs(dir); python && s.dir != "" {
		s.fifos = checkFIFO(s.dir) == nil
	}
	return s
}

// Paths are where a worker's recorder is to write: the beginnings of two names, "" for none. The
// first one is that which torch's tools expect.
func (s *Set) Paths() (dump, pipe string) {
	if s.dir != "" {
		dump = filepath.Join(s.dir, "nccl_trace_rank_")
	}
	if s.fifos {
		pipe = filepath.Join(s.dir, "flight_recorder_")
	}
	return dump, pipe
}

// Note notes the rank of a worker.
func (s *Set) Note(rank int) { s.ranks = append(s.ranks, rank) }

// removeLimit is how long the directory of the FIFOs may take to respond.
const removeLimit = time.Second

// RemoveFIFOs removes what the recorders have left in the directory of the logs.
func (s *Set) RemoveFIFOs() {
	if !s.fifos {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeLimit)
	defer cancel()
	_, beginning := s.Paths()
	_, _ = host.Await(ctx, func() {}, func() (struct{}, error) {
		for _, rank := range s.ranks {
			path := beginning + strconv.Itoa(rank) + ".pipe"
			if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
				os.Remove(path)
			}
		}
		return struct{}{}, nil
	})
}

// checkFIFO tells whether there can be FIFOs in a directory: torch ends the process if it cannot
// make its own.
func checkFIFO(dir string) error {
	name, _ := os.Hostname()
	path := filepath.Join(dir, fmt.Sprintf(".fifo.%s.%d", name, os.Getpid()))
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return fmt.Errorf("cannot make a FIFO in %q: %w", dir, err)
	}
	return os.Remove(path)
}
