package wrap

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/descriptor"
	"rdzv/wrap/internal/tee"
)

// Output lets the runner read what a worker writes. Worker.Stdout and Worker.Stderr are then
// where that is shown; nil shows nothing. If there is a log, or if they are the same file, stdout
// and stderr of the worker are one pipe, which is shown at Worker.Stdout: what it writes to the two
// then remains in order.
type Output struct {
	// Log gets every byte that the worker writes; nil is no log. Open it with O_APPEND. If it blocks
	// for 5 s or cannot be written, it is given up and Tree.LogLost is called.
	Log *os.File `json:"-"`
	// Tag is written before every line that is shown.
	Tag string `json:"-"`
	// Hold shows a line when it is complete (of up to 1 MiB), and ends a last line that is not, for
	// workers that are shown at the same place as others.
	Hold bool
	// Framed shows what is written at once, in frames: Tag, the length "12\n", and so many bytes. Each
	// is one write, which a pipe does not mix with others.
	Framed bool
	// Relayed says that another program, which reads Stdout and Stderr, mixes what each of its reads
	// returns with other output. If it is a pipe it then contains whole lines, of up to 4096 bytes.
	Relayed bool
}

// joined tells whether stdout and stderr of the worker are one pipe, or one pseudoterminal.
func (w *Worker) joined() bool {
	if w.Output == nil {
		return w.onTerminal() && w.sameFile()
	}
	return w.Output.Log != nil || w.sameFile()
}

// sameFile tells whether both are shown at the same place.
func (w *Worker) sameFile() bool {
	if w.Stdout == nil || w.Stderr == nil {
		return false
	}
	out, errOut := w.Stdout.Stat()
	same, errSame := w.Stderr.Stat()
	if errOut == nil && errSame == nil && os.SameFile(out, same) {
		return true
	}
	fd, errOut := descriptor.Of(w.Stdout)
	other, errSame := descriptor.Of(w.Stderr)
	return errOut == nil && errSame == nil && tee.SameTerminal(fd, other)
}

// onTerminal tells whether the worker is captured by means of a pseudoterminal.
func (w *Worker) onTerminal() bool {
	return w.Output == nil && w.Capture && isTerminal(w.Stderr)
}

// outputs are the outputs of all workers that are read.
type outputs struct {
	attempt *attempt
	screens map[*os.File]*tee.Screen
	unshown []*tee.Screen // after close, those that still have something to write
	null    *os.File      // for workers without a stream; nil if none needs it
	changed chan struct{} // delivers when what is known of one may have changed
	tellAt  time.Time     // when the agent is told; zero is never
}

// files are descriptors to be closed.
type files []int

func (f *files) close() {
	for _, fd := range *f {
		unix.Close(fd)
	}
	*f = nil
}

// open opens the streams of worker i, and starts to read what it will write, as far as it is read.
func (o *outputs) open(i int) (err error) {
	w, s := &o.attempt.tree.Workers[i], &o.attempt.states[i]
	for stream, f := range []*os.File{w.Stdin, w.Stdout, w.Stderr} {
		if s.streams[stream], err = o.number(f); err != nil {
			return err
		}
	}
	streams := []int{1, 2} // those that are read, the last one is kept
	switch {
	case w.Output == nil && (!w.Capture || w.Stderr == nil):
		return nil
	case w.joined():
		streams = []int{1}
	case w.Output == nil:
		streams = []int{2} // stdout is not read, so that nothing of it is lost here
	}
	err = o.openStreams(i, streams)
	if s.unread != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the output of worker %d: %w", i, err)
	}
	return nil
}

// readsAll tells whether stdout and stderr of worker i are read.
func (o *outputs) readsAll(i int) bool {
	s := &o.attempt.states[i]
	return s.tail != nil && (s.joined || o.attempt.tree.Workers[i].Output != nil)
}

// number is the descriptor of a file, or of /dev/null without one.
func (o *outputs) number(f *os.File) (int, error) {
	if f == nil && o.null == nil {
		var err error
		if o.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
			return 0, err
		}
	}
	if f == nil {
		f = o.null
	}
	return descriptor.Of(f)
}

// newEnds returns the ends of what a worker writes a stream to: a pipe or, where it has a terminal,
// a pseudoterminal. If that fails, which state.unread says, it keeps the terminal.
func (o *outputs) newEnds(i, stream int) (read, write int, err error) {
	w, s := &o.attempt.tree.Workers[i], &o.attempt.states[i]
	if !w.onTerminal() {
		return tee.NewPipe()
	}
	read, write, s.unread = tee.NewTerminal(s.streams[stream])
	return read, write, s.unread
}

func (o *outputs) openStreams(i int, streams []int) error {
	w, s := &o.attempt.tree.Workers[i], &o.attempt.states[i]
	var ends [2][2]int
	for n, stream := range streams {
		var err error
		if ends[n][0], ends[n][1], err = o.newEnds(i, stream); err != nil {
			for _, opened := range ends[:n] {
				unix.Close(opened[0])
			}
			return err
		}
		s.ends = append(s.ends, ends[n][1])
	}
	s.tail = tee.NewTail(o.poke)
	s.drained[0], s.drained[1] = make(chan struct{}), make(chan struct{})
	how := Output{}
	if w.Output != nil {
		how = *w.Output
	}
	s.joined, s.logged = w.joined(), how.Log != nil
	switch {
	case s.joined:
		s.drained[1] = s.drained[0]
	case streams[0] == 2:
		close(s.drained[0])
	}
	for n, stream := range streams {
		read, write := ends[n][0], ends[n][1]
		t, err := o.newTee(i, stream, read, how, n == len(streams)-1)
		if err != nil {
			unix.Close(read)
			return err
		}
		if s.streams[stream] = write; s.joined {
			s.streams[2] = write
		}
		t.Start()
		s.tees = append(s.tees, t)
	}
	return nil
}

// newTee returns a Tee of a stream of worker i, which is not started. The last one of a worker also
// keeps what it copies.
func (o *outputs) newTee(i, stream, read int, how Output, last bool) (t *tee.Tee, err error) {
	s, w := &o.attempt.states[i], &o.attempt.tree.Workers[i]
	shown := w.Stdout
	if stream == 2 {
		shown = w.Stderr
	}
	drained := s.drained[stream-1]
	t = &tee.Tee{
		From: read, PTY: w.onTerminal(), Log: -1, Tag: how.Tag, Hold: how.Hold, Framed: how.Framed,
		Vain:    stream == 1,
		Drained: func() { close(drained) },
	}
	if w.Output != nil {
		t.Hidden = func(reason syscall.Errno, bytes int64) { o.lost(i, stream, reason, bytes) }
	}
	if t.Show, err = o.screen(shown, how.Relayed); err != nil {
		return t, err
	}
	if !last {
		t.Aside = s.tail
		return t, nil
	}
	t.Tail = s.tail
	t.Keeps = w.Output == nil || !s.joined || w.sameFile()
	if how.Log == nil {
		return t, nil
	}
	t.Lost = func(reason syscall.Errno, bytes int64) { o.logLost(i, reason, bytes) }
	t.Log, err = duplicate(how.Log)
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

// close waits until everything has been copied, when nothing of the tree is left. It may be called
// again.
func (o *outputs) close() {
	var wg sync.WaitGroup
	for i := range o.attempt.states {
		for _, t := range o.attempt.states[i].tees {
			wg.Go(t.Close)
		}
	}
	wg.Wait()
	for _, s := range o.screens {
		if s.Close(); !s.Await() {
			o.unshown = append(o.unshown, s)
		}
	}
	clear(o.screens)
	if o.null != nil {
		_ = o.null.Close()
	}
}

// resize gives the pseudoterminals the size of the terminals where they are shown. It reports
// whether one had another size.
func (o *outputs) resize() (changed bool) {
	for i := range o.attempt.states {
		for _, t := range o.attempt.states[i].tees {
			changed = t.Resize() || changed
		}
	}
	return changed
}

// idleWait is how long a shell may have to wait for output that was written before a job stopped.
const idleWait = 100 * time.Millisecond

// awaitIdle waits until what the workers have written to pseudoterminals is shown, for at most
// idleWait.
func (o *outputs) awaitIdle() {
	until := time.Now().Add(idleWait)
	for i := range o.attempt.states {
		for _, t := range o.attempt.states[i].tees {
			for !t.IsIdle() && time.Now().Before(until) {
				time.Sleep(time.Millisecond)
			}
		}
	}
}

const (
	// tellPause is how long the agent is not told of output after it was, linePause if it is to know
	// that what is shown ends within a line, or does not any more.
	tellPause = 250 * time.Millisecond
	linePause = 20 * time.Millisecond
	// traceTime is how long after a traceback the agent is told it again if more was written.
	traceTime = 2 * time.Second
)

// poke is called when what is known of a worker has changed.
func (o *outputs) poke() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// noted decides when the agent is told of a change.
func (o *outputs) noted() {
	for i := range o.attempt.states {
		if s := &o.attempt.states[i]; s.tail != nil {
			now, pause := s.tail.State(), tellPause
			if now.Within != s.within {
				pause = linePause
			}
			if at := s.toldAt.Add(pause); now.Last > 0 && (o.tellAt.IsZero() || at.Before(o.tellAt)) {
				o.tellAt = at
			}
		}
	}
}

func (o *outputs) untilTell() time.Duration {
	if o.tellAt.IsZero() {
		return time.Hour
	}
	return time.Until(o.tellAt)
}

// tell tells the agent if it is time.
func (o *outputs) tell(now time.Time) {
	if o.tellAt.IsZero() || now.Before(o.tellAt) {
		return
	}
	o.tellAt = time.Time{}
	for i := range o.attempt.states {
		s := &o.attempt.states[i]
		if s.tail == nil {
			continue
		}
		state, before := s.tail.Told()
		if state.Last != before.Last || state.Lines != before.Lines || state.Within != before.Within {
			s.within, s.toldAt = state.Within, now
			o.report(i)
		}
	}
}

// report reports what is known of the output of a worker when it is sent: an agent that is stopped
// does not read for a while.
func (o *outputs) report(i int) {
	s := &o.attempt.states[i]
	if s.reporting.Swap(true) {
		return
	}
	o.attempt.reports.add(func() {
		s.reporting.Store(false)
		o.attempt.send(wrote, o.message(i))
	})
}

// message is what is known of the output of a worker.
func (o *outputs) message(i int) outputMessage {
	tail := o.attempt.states[i].tail
	now := tail.State()
	m := outputMessage{
		Worker: i, First: now.First, Last: now.Last, Line: now.Line, TracedAt: now.TracedAt,
		Within: now.Within, Lines: now.Lines,
	}
	if now.TracedAt != 0 && now.Last-now.TracedAt < int64(traceTime) {
		m.Traceback, m.TracedAt = tail.Traceback()
	}
	return m
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
	s, reason, name := &o.attempt.states[i], error(errno), "stderr"
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
	o.attempt.report(outputLost, lossMessage{i, name, failureOf(reason), bytes})
}

// logLost calls Tree.LogLost.
func (o *outputs) logLost(i int, errno syscall.Errno, bytes int64) {
	s, reason := &o.attempt.states[i], error(errno)
	if errno == 0 {
		reason = ErrLogBlocked
	}
	s.mu.Lock()
	s.logged = false
	s.mu.Unlock()
	o.attempt.report(logLost, lossMessage{i, "", failureOf(reason), bytes})
}
