package wrap

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/descriptor"
	"rdzv/wrap/internal/holder"
	"rdzv/wrap/internal/tee"
)

// Output lets this process read what a worker writes. Worker.Stdout and Worker.Stderr are then
// where that is shown; nil shows nothing. If there is a log, or if they are the same file, stdout
// and stderr of the worker are one pipe, which is shown at Worker.Stdout: what it writes to the two
// then remains in order.
type Output struct {
	// Log gets every byte that the worker writes; nil is no log. Open it with O_APPEND. If it blocks
	// for 5 s or cannot be written, it is given up and Tree.LogLost is called. If this process is
	// killed, the holder writes to it what this process has not.
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

// outputs are the outputs of all workers that are read.
type outputs struct {
	tree    *Tree
	states  []state // by worker
	screens map[*os.File]*tee.Screen
	call    func(func()) // calls one of the functions of tree
	drop    func(i int)  // tells the holder that worker i needs no log
}

// files are descriptors to be closed.
type files []int

func (f *files) close() {
	for _, fd := range *f {
		unix.Close(fd)
	}
	*f = nil
}

// open starts to read what worker i will write, as far as it is read. h gets the write ends
// of pipes, which are added to ends.
func (o *outputs) open(i int, h *holder.WorkerSpec, ends *files) error {
	w := &o.tree.Workers[i]
	streams := []int{1, 2} // those that are read, the last one is kept
	switch {
	case w.Output == nil && (!w.Capture || w.Stderr == nil):
		return nil
	case w.Output == nil:
		streams = []int{2} // stdout is not read, so that nothing of it is lost here
	case w.joined():
		streams = []int{1}
	}
	if err := o.openStreams(i, streams, h, ends); err != nil {
		return fmt.Errorf("cannot read the output of worker %d: %w", i, err)
	}
	return nil
}

func (o *outputs) openStreams(i int, streams []int, h *holder.WorkerSpec, ends *files) error {
	w, s := &o.tree.Workers[i], &o.states[i]
	tail := tee.NewTail(w.LastOutput.memory())
	s.tail = &tail
	s.drained[0], s.drained[1] = make(chan struct{}), make(chan struct{})
	how := Output{}
	if w.Output != nil {
		how = *w.Output
		s.joined, s.logged = w.joined(), how.Log != nil
	}
	switch {
	case s.joined:
		s.drained[1] = s.drained[0]
	case streams[0] == 2:
		close(s.drained[0])
	}
	w.LastOutput.setSource(tail)
	if w.Output != nil && (!s.joined || w.sameFile()) {
		w.Line.follow(tail)
	}
	for n, stream := range streams {
		read, write, err := tee.NewPipe()
		if err != nil {
			return err
		}
		*ends = append(*ends, write)
		last := n == len(streams)-1
		t, err := o.newTee(i, stream, read, how, last)
		if err != nil {
			unix.Close(read)
			return err
		}
		if h.Files[stream] = write; s.joined {
			h.Files[2] = write
		}
		if last && how.Log != nil {
			h.Pipe, h.Log, h.Chunk = read, t.Log, t.Chunk
		}
		t.Start()
		s.tees = append(s.tees, t)
	}
	return nil
}

// newTee returns a Tee of a stream of worker i, which is not started. The last one of a worker also
// keeps what it copies.
func (o *outputs) newTee(i, stream, read int, how Output, last bool) (t *tee.Tee, err error) {
	s, w := &o.states[i], &o.tree.Workers[i]
	shown := w.Stdout
	if stream == 2 {
		shown = w.Stderr
	}
	drained := s.drained[stream-1]
	t = &tee.Tee{
		From: read, Log: -1, Tag: how.Tag, Hold: how.Hold, Vain: stream == 1,
		Drained: func() { close(drained) },
	}
	if w.Output == nil {
		t.Shown = w.Line.wrote
	} else {
		t.Hidden = func(reason syscall.Errno, bytes int64) { o.lost(i, stream, reason, bytes) }
	}
	if t.Show, err = o.screen(shown, how.Relayed); err != nil {
		return t, err
	}
	if !last {
		t.Aside = *s.tail
		return t, nil
	}
	t.Tail = *s.tail
	if how.Log == nil {
		return t, nil
	}
	t.Lost = func(reason syscall.Errno, bytes int64) { o.logLost(i, reason, bytes) }
	t.Unneeded = func() { o.drop(i) }
	if s.chunk, err = holder.NewChunk(); err == nil {
		t.Chunk = s.chunk
		t.Log, err = duplicate(how.Log)
	}
	return t, err
}

// duplicate returns another descriptor of the same file, at least 3: Go ends a process that gets
// EPIPE when it writes to descriptor 1 or 2.
func duplicate(f *os.File) (int, error) {
	fd, err := descriptor.Of(f)
	if err != nil {
		return -1, err
	}
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
}

// screen is where a file leads, nil if there is none.
func (o *outputs) screen(f *os.File, relayed bool) (*tee.Screen, error) {
	if f == nil || o.screens[f] != nil {
		return o.screens[f], nil
	}
	fd, err := duplicate(f)
	if err != nil {
		return nil, err
	}
	o.screens[f] = tee.NewScreen(fd, relayed)
	return o.screens[f], nil
}

// close waits until everything has been copied, when nothing of the tree is left, and lets the
// holder end. It may be called again.
func (o *outputs) close() {
	var wg sync.WaitGroup
	for i := range o.states {
		for _, t := range o.states[i].tees {
			wg.Go(t.Close)
		}
	}
	wg.Wait()
	for i := range o.states {
		s := &o.states[i]
		if s.tees = nil; s.chunk != nil {
			o.drop(i)
			s.chunk.Close()
			s.chunk = nil
		}
	}
	for _, s := range o.screens {
		s.Close()
	}
	clear(o.screens)
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
	if !judged || result.Stopped || !s.await(0, until) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		return
	}
	result.Err = &OutputError{s.lost}
	if result.Signal == 0 {
		result.Code = 1
	}
}

// lost calls Tree.OutputLost.
func (o *outputs) lost(i, stream int, errno syscall.Errno, bytes int64) {
	s, reason, name := &o.states[i], error(errno), "stderr"
	if errno == 0 {
		reason = ErrNotRead
	}
	if stream == 1 {
		name = "stdout"
	}
	select {
	case <-s.drained[0]: // it may have been judged
	default:
		s.mu.Lock()
		if stream == 1 && !s.logged {
			s.lost = reason
		}
		s.mu.Unlock()
	}
	if o.tree.OutputLost != nil {
		o.call(func() { o.tree.OutputLost(i, name, reason, bytes) })
	}
}

// logLost calls Tree.LogLost.
func (o *outputs) logLost(i int, errno syscall.Errno, bytes int64) {
	s, reason := &o.states[i], error(errno)
	if errno == 0 {
		reason = ErrLogBlocked
	}
	s.mu.Lock()
	s.logged = false
	s.mu.Unlock()
	if o.tree.LogLost != nil {
		o.call(func() { o.tree.LogLost(i, reason, bytes) })
	}
}

// releaseTails is called after the last call of text.
func (o *outputs) releaseTails() {
	for i, s := range o.states {
		if s.tail != nil {
			w := &o.tree.Workers[i]
			w.LastOutput.setSource(writtenOf(s.tail)) // and not the memory
			w.Line.release()
		}
	}
}
