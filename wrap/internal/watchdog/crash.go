package watchdog

import (
	"io"
	"os"
	"syscall"
	"time"
)

// Crash is what the watchdog does if the agent has crashed.
type Crash struct {
	Trace  int    // what the agent's runtime has written then; a descriptor, as Worker.Files
	Stderr int    // where Line is printed; the same
	Path   string // of the file that is to have the trace; "" keeps none
	Line   string // which says that; if there can be no file, the trace is printed
}

// withOwn is c with descriptors that stay open when those of the workers are closed.
func (c Crash) withOwn(files []int) Crash {
	for _, at := range []*int{&c.Trace, &c.Stderr} {
		if *at == Null || *at >= len(files) {
			*at = Null
			continue
		}
		*at = duplicate(files[*at])
	}
	return c
}

// duplicate returns another descriptor of the same file, Null if there can be none.
func duplicate(fd int) int {
	n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, 3)
	if errno != 0 {
		return Null
	}
	return int(n)
}

// traceWait limits the time for keeping a trace: the file system or the reader of Stderr may hang.
const traceWait = time.Second

// maxTrace is how much of a trace is kept.
const maxTrace = 1 << 20

// keepTrace begins to keep the trace of an agent that has ended, if it has crashed. The workers are
// killed meanwhile.
func (w *watchdog) keepTrace() {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept, c := make(chan struct{}), w.crash
	w.kept = kept
	go func() {
		defer close(kept)
		if c.Path == "" || c.Trace == Null {
			return
		}
		from := os.NewFile(uintptr(c.Trace), "trace")
		trace, _ := io.ReadAll(io.NewSectionReader(from, 0, maxTrace))
		if len(trace) == 0 {
			return
		}
		line := []byte(c.Line)
		if os.WriteFile(c.Path, trace, 0o600) != nil {
			line = trace
		}
		if c.Stderr != Null {
			_, _ = syscall.Write(c.Stderr, line)
		}
	}()
}

// awaitTrace waits until the trace is kept, if the agent has ended.
func (w *watchdog) awaitTrace() {
	if w.kept == nil {
		return
	}
	select {
	case <-w.kept:
	case <-time.After(traceWait):
	}
}
