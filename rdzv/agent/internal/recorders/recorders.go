// Package recorders lets the flight recorders of all workers of an agent write.
package recorders

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/recorder"
)

// Set are the flight recorders of the workers of an agent, in one attempt.
type Set struct {
	dir   string // where rdzv lets the workers put the files; "" if it does not
	fifos bool   // there can be FIFOs
	files []recorder.Files

	mu    sync.Mutex
	asked []time.Time // when each was told to write, zero if it was not
}

// Prepare is called by the goroutine that opens the logs, in their directory. It has FIFOs if the
// workers run Python.
func Prepare(dir string, python bool) *Set {
	s := &Set{}
	if s.dir, _ = filepath.Abs(dir); python && s.dir != "" {
		s.fifos = recorder.CheckFIFO(s.dir) == nil
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

// Note notes the files of a worker by its environment, which may be the user's.
func (s *Set) Note(env map[string]string, rank int) {
	dump := env["TORCH_FR_DUMP_TEMP_FILE"]
	if dump == "" {
		dump = env["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"]
	}
	pipe := env["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"]
	if !filepath.IsAbs(pipe) {
		pipe = "" // it depends on the worker's directory
	}
	s.files = append(s.files, recorder.Of(dump, pipe, rank))
	s.asked = append(s.asked, time.Time{})
}

// triggerLimit is how long the directory of the FIFOs may take to respond.
const triggerLimit = time.Second

// Trigger tells the recorders to write, and returns how many do, and where.
func (s *Set) Trigger(ctx context.Context) (n int, dir string) {
	ctx, cancel := context.WithTimeout(ctx, triggerLimit)
	defer cancel()
	now := time.Now()
	done, _ := host.Await(ctx, func() {}, func() (triggered []bool, err error) {
		for _, f := range s.files {
			triggered = append(triggered, f.Trigger())
		}
		return triggered, nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, triggered := range done {
		if triggered {
			s.asked[i] = now
			n, dir = n+1, filepath.Dir(s.files[i].Dump)
		}
	}
	return n, dir
}

// Unwritten is how many recorders have been told to write and have not done so yet.
func (s *Set) Unwritten(ctx context.Context) int {
	s.mu.Lock()
	asked := slices.Clone(s.asked)
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, triggerLimit)
	defer cancel()
	n, _ := host.Await(ctx, func() {}, func() (n int, err error) {
		for i, at := range asked {
			if !at.IsZero() && !s.files[i].Written(at, time.Now()) {
				n++
			}
		}
		return n, nil
	})
	return n
}

// RemoveFIFOs removes what the recorders have left in the directory of the logs.
func (s *Set) RemoveFIFOs() {
	if !s.fifos {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), triggerLimit)
	defer cancel()
	_, _ = host.Await(ctx, func() {}, func() (struct{}, error) {
		for _, f := range s.files {
			if strings.HasPrefix(f.Pipe, s.dir+"/") {
				f.Remove()
			}
		}
		return struct{}{}, nil
	})
}
