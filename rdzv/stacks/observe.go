package stacks

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"rdzv/internal/procfs"
	"rdzv/internal/procfs/nettcp"
)

// Observer observes the workers of one agent.
type Observer struct {
	Proc fs.FS // /proc
	// Took is how long the use of CPU time is measured, and the limit for PySpy.
	Took time.Duration
	// PySpy runs "py-spy dump" with more arguments and returns what it prints. nil if there is none.
	PySpy func(ctx context.Context, args ...string) ([]byte, error)
	// MasterPort is MASTER_PORT, at which rank 0 serves torch's store.
	MasterPort int
}

// Observe tells what workers are doing, each with its rank and the pid with which it was started.
// It takes Took, or until ctx ends.
func (o *Observer) Observe(ctx context.Context, workers []Worker) []Worker {
	ctx, cancel := context.WithTimeout(ctx, o.Took)
	defer cancel()
	var wg sync.WaitGroup
	calls := max(1, min(maxFrames, maxAllFrames/max(1, len(workers))))
	for i := range workers {
		wg.Go(func() { o.observe(ctx, &workers[i], calls) })
	}
	wg.Wait()
	return workers
}

func (o *Observer) observe(ctx context.Context, w *Worker, calls int) {
	if python := FindPython(o.Proc, w.PID); python != 0 {
		w.PID = python
	}
	begin, before := time.Now(), o.usage(w.PID)
	python, problem := o.python(ctx, w.PID, calls)
	<-ctx.Done()
	took, after := time.Since(begin), o.usage(w.PID)
	w.CPU = percent(after.process-before.process, took)
	o.readThreads(w, percent(after.main-before.main, took) >= busy)
	if python.calls != nil {
		w.Python, w.At, w.Others = python.calls, python.at, python.others
	} else if w.Problem == "" {
		w.Problem = problem
	}
}

// busy is the use of CPU time, in percent, from which on a thread is running, although it may be
// waiting at the moment.
const busy = 50

// usage is the CPU time that a process and its main thread have used, in clock ticks.
type usage struct{ process, main uint64 }

func (o *Observer) usage(pid int) (u usage) {
	p, _ := procfs.Read(o.Proc, pid) // a process that has ended uses no time
	m, _ := procfs.ReadThread(o.Proc, pid, pid)
	return usage{p.CPU, m.CPU}
}

// percent returns CPU time in percent of one CPU. A clock tick is 10 ms for all programs.
func percent(ticks uint64, of time.Duration) int {
	const tick = 10 * time.Millisecond
	if of <= 0 || ticks > 1<<32 { // the process has ended meanwhile
		return 0
	}
	return int(time.Duration(ticks) * tick * 100 / of)
}

// FindPython is the process that runs Python: pid or a descendant of it; 0 if there is none. It is
// recognised by the name of the file that it executes: torch changes the name of the process.
func FindPython(proc fs.FS, pid int) int {
	return procfs.FindDescendant(proc, pid, func(pid int) bool {
		exe, err := fs.ReadLink(proc, path.Join(strconv.Itoa(pid), "exe"))
		return err == nil && strings.HasPrefix(path.Base(exe), "python")
	})
}

// readThreads sets what the kernel shows of a process.
func (o *Observer) readThreads(w *Worker, mainBusy bool) {
	entries, err := fs.ReadDir(o.Proc, path.Join(strconv.Itoa(w.PID), "task"))
	if err != nil {
		w.Main.Does = "ended"
		return
	}
	in := &inspection{Observer: o, pid: w.PID, foreign: foreign(o.Proc, w.PID)}
	in.peers = sync.OnceValue(func() peers { return nettcp.Peers(o.Proc, strconv.Itoa(w.PID)) })
	var others []string
	for _, e := range entries {
		tid, _ := strconv.Atoi(e.Name()) // a number
		t, err := in.thread(tid)
		if errors.Is(err, fs.ErrPermission) {
			w.Problem = "the kernel does not show its system calls: permission denied"
		}
		switch {
		case tid != w.PID:
			others = append(others, t.Does)
		case mainBusy:
			t.Does, t.Object = "running", ""
			fallthrough
		default:
			w.Main = t
		}
	}
	w.Others = counts(others)
}
