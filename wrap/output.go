package wrap

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/wrap/internal/tee"
	"rdzv/wrap/internal/watchdog"
)

// Output lets the watchdog read what a worker writes, so that nothing of it is lost if this process
// is killed. Worker.Stdout and Worker.Stderr are then where that is shown; nil shows nothing. If
// there is a log, or if they are the same file, stdout and stderr of the worker are one pipe, which
// is shown at Worker.Stdout: what it writes to the two then remains in order.
type Output struct {
	// Log gets every byte that the worker writes; nil is no log. Open it with O_APPEND. If it
	// blocks for 5 s or cannot be written, it is given up and Tree.LogLost is called.
	Log *os.File
	// Tag is written before every line that is shown.
	Tag string
	// Hold shows a line when it is complete (of up to 1 MiB), and ends a last line that is not, for
	// workers that are shown at the same place as others.
	Hold bool
	// Relayed says that another program, which reads Stdout and Stderr, mixes what each of its reads
	// returns with other output. If it is a pipe it then contains whole lines, of up to 4096 bytes.
	Relayed bool
}

// joined tells whether stdout and stderr of the worker are one pipe.
func (w *Worker) joined() bool { return w.Output.Log != nil || w.sameFile() }

// sameFile tells whether both are shown at the same place.
func (w *Worker) sameFile() bool {
	if w.Stdout == nil || w.Stderr == nil {
		return false
	}
	out, errOut := w.Stdout.Stat()
	same, errSame := w.Stderr.Stat()
	return errOut == nil && errSame == nil && os.SameFile(out, same)
}

// output is the watchdog's description of the output of worker i. add adds a descriptor to those
// that are sent.
func (r *run) output(i int, add func(*os.File) int) (o watchdog.Output, err error) {
	w, s := &r.tree.Workers[i], &r.states[i]
	if w.Output == nil {
		return o, nil
	}
	file, tail, err := newTail()
	if err != nil {
		return o, fmt.Errorf("cannot read the output of worker %d: %w", i, err)
	}
	s.tail, s.joined, s.logged = &tail, w.joined(), w.Output.Log != nil
	s.drained[0], s.drained[1] = make(chan struct{}), make(chan struct{})
	if s.joined {
		s.drained[1] = s.drained[0]
	}
	w.LastOutput.is(tail.LastWrite)
	if !s.joined || w.sameFile() {
		w.Line.add(tail)
	}
	r.own = append(r.own, file)
	return watchdog.Output{
		Piped: true, Joined: s.joined, Log: add(w.Output.Log), Tail: add(file),
		Tag: w.Output.Tag, Hold: w.Output.Hold, Relayed: w.Output.Relayed,
	}, nil
}

// newTail returns a file in memory and the Tail in it.
func newTail() (*os.File, tee.Tail, error) {
	fd, err := unix.MemfdCreate("tail", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, tee.Tail{}, err
	}
	file := os.NewFile(uintptr(fd), "tail")
	err = file.Truncate(tee.TailFile)
	var tail tee.Tail
	if err == nil {
		tail, err = tee.MapTail(fd)
	}
	if err != nil {
		file.Close()
	}
	return file, tail, err
}

// text waits until all that the worker itself wrote has been copied, at most until until, and
// returns the end of it.
func (s *state) text(until time.Time) []byte {
	s.await(1, until)
	return s.tail.Bytes()
}

// await waits until all that the worker itself wrote to a stream has been copied, at most until
// until, and reports whether it has.
func (s *state) await(stream int, until time.Time) bool {
	select {
	case <-s.drained[stream]:
		return true
	case <-time.After(time.Until(until)):
		return false
	}
}

// judgeOutput makes the result of a worker a failure if it succeeded although some of its stdout is
// lost, and gives that reason if it died because of it.
func (s *state) judgeOutput(result *Result, until time.Time) {
	judged := result.ExitCode() == 0 || result.Signal == syscall.SIGPIPE
	if !judged || result.Stopped || !s.await(0, until) || s.lost == nil {
		return
	}
	result.Err = &OutputError{s.lost}
	if result.Signal == 0 {
		result.Code = 1
	}
}

// outputLost calls Tree.OutputLost.
func (r *run) outputLost(e watchdog.Record) {
	s, stdout := &r.states[e.Index], e.C == 0
	reason, stream := error(syscall.Errno(e.A)), "stderr"
	if e.A == 0 {
		reason = ErrNotRead
	}
	if stdout {
		stream = "stdout"
	}
	select {
	case <-s.drained[0]: // it may have been judged
	default:
		if stdout && !s.logged {
			s.lost = reason
		}
	}
	if r.tree.OutputLost != nil {
		r.calls <- func() { r.tree.OutputLost(e.Index, stream, reason, e.B) }
	}
}

// logLost calls Tree.LogLost.
func (r *run) logLost(e watchdog.Record) {
	reason := error(syscall.Errno(e.A))
	if e.A == 0 {
		reason = ErrLogBlocked
	}
	r.states[e.Index].logged = false
	if r.tree.LogLost != nil {
		r.calls <- func() { r.tree.LogLost(e.Index, reason, e.B) }
	}
}

// releaseTails is called after the last call of text.
func (r *run) releaseTails() {
	for i, s := range r.states {
		if s.tail != nil {
			at := s.tail.LastWrite()
			r.tree.Workers[i].LastOutput.is(func() int64 { return at })
			r.tree.Workers[i].Line.release()
			s.tail.Close()
		}
	}
}

// LastOutput is when a worker has last written something. The zero value is ready to use.
type LastOutput struct {
	mu sync.Mutex
	at func() int64 // in Unix nanoseconds, 0 if it has not; nil if that is not known
}

// Time returns the time, which is zero if the worker has written nothing or that is not known.
func (l *LastOutput) Time() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil || l.at() == 0 {
		return time.Time{}
	}
	return time.Unix(0, l.at())
}

func (l *LastOutput) is(at func() int64) {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.at = at
	}
}
