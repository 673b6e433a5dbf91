package agent

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"rdzv/envmap"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/recorder"
)

// flightRecorder are the files of torch's flight recorder in the workers of this agent, in one
// attempt.
type flightRecorder struct {
	dir   string // where rdzv lets the workers put them; "" if it does not
	fifos bool   // there can be FIFOs
	files []recorder.Files
	asked []time.Time // when each was told to write, zero if it was not
}

// prepareRecorder is called by the goroutine that opens the logs, in their directory.
func prepareRecorder(dir string, python bool) (f flightRecorder) {
	if f.dir, _ = filepath.Abs(dir); python && f.dir != "" {
		f.fifos = recorder.CheckFIFO(f.dir) == nil
	}
	return f
}

// identity is where a worker's recorder is to write. Its name is that which torch's tools expect.
func (f *flightRecorder) identity() (r envmap.Recorder) {
	if f.dir != "" {
		r.Dump = filepath.Join(f.dir, "nccl_trace_rank_")
	}
	if f.fifos {
		r.Pipe = filepath.Join(f.dir, "flight_recorder_")
	}
	return r
}

// note notes the files of a worker by its environment, which may be the user's.
func (f *flightRecorder) note(environ []string, rank int) {
	env := envmap.ParseEnv(environ)
	dump := env["TORCH_FR_DUMP_TEMP_FILE"]
	if dump == "" {
		dump = env["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"]
	}
	pipe := env["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"]
	if !filepath.IsAbs(pipe) {
		pipe = "" // it depends on the worker's directory
	}
	f.files = append(f.files, recorder.Of(dump, pipe, rank))
	f.asked = append(f.asked, time.Time{})
}

// triggerLimit is how long the directory of the FIFOs may take to respond.
const triggerLimit = time.Second

// trigger tells the workers' flight recorders to write, and returns how many do, and where.
func (w *workers) trigger(ctx context.Context) (n int, dir string) {
	if !w.prepared.Load() {
		return 0, ""
	}
	ctx, cancel := context.WithTimeout(ctx, triggerLimit)
	defer cancel()
	files, now := w.recorder.files, time.Now()
	done, _ := host.Await(ctx, func() {}, func() (triggered []bool, err error) {
		for _, f := range files {
			triggered = append(triggered, f.Trigger())
		}
		return triggered, nil
	})
	w.recorderMu.Lock()
	defer w.recorderMu.Unlock()
	for i, triggered := range done {
		if triggered {
			w.recorder.asked[i] = now
			n, dir = n+1, filepath.Dir(files[i].Dump)
		}
	}
	return n, dir
}

// unwritten is how many flight recorders have been told to write and have not done so yet.
func (w *workers) unwritten(ctx context.Context) int {
	if !w.prepared.Load() {
		return 0
	}
	w.recorderMu.Lock()
	asked := append([]time.Time(nil), w.recorder.asked...)
	w.recorderMu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, triggerLimit)
	defer cancel()
	n, _ := host.Await(ctx, func() {}, func() (n int, err error) {
		for i, at := range asked {
			if !at.IsZero() && !w.recorder.files[i].Written(at, time.Now()) {
				n++
			}
		}
		return n, nil
	})
	return n
}

// removeFIFOs removes what the workers' recorders have left in the directory of the logs.
func (w *workers) removeFIFOs() {
	if !w.recorder.fifos {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), triggerLimit)
	defer cancel()
	_, _ = host.Await(ctx, func() {}, func() (struct{}, error) {
		for _, f := range w.recorder.files {
			if strings.HasPrefix(f.Pipe, w.recorder.dir+"/") {
				f.Remove()
			}
		}
		return struct{}{}, nil
	})
}
