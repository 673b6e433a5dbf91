// Package tee copies what a worker writes to its log file and to where it is shown, and keeps the
// end of it.
//
// A write that hangs in the kernel, such as one to a file server that is down, cannot be
// interrupted. The goroutine that hangs is left behind then, and another one takes its turn.
package tee

import (
	"math"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// LogWait is how long a write to a log file may take. A file that takes longer is given up.
const LogWait = 5 * time.Second

// showWait is how long nothing may be read where it is shown when the worker and all its
// descendants have ended. What is left is then not shown.
const showWait = time.Second

// Tee copies from one pipe, or from a pseudoterminal. Its fields with capital letters are set
// before Start.
type Tee struct {
	From int     // the end that is read, non-blocking
	PTY  bool    // it is that of a pseudoterminal, of which every byte is shown as it is
	Log  int     // a descriptor, or -1
	Show *Screen // nil shows nothing
	Tag  string  // in front of each line that is shown
	Hold bool    // shows a line when it is complete, because other workers write to the same screen
	// Framed shows each part of the stream as it comes: after Tag and its length, "12\n".
	Framed bool
	Tail   *Tail // keeps the end; nil keeps nothing
	Keeps  bool  // the Tail knows how what is shown ends
	Aside  *Tail // keeps another stream of the worker, and notes what this one has
	Vain   bool  // closes the pipe if the output can neither be shown nor is in Log

	// Drained is called once, when all that a worker that has ended wrote itself has been copied.
	Drained func()
	// Lost is called when the log file is given up, with 0 bytes and the reason, which is 0 if it
	// blocked for LogWait; and once more at the end, with the number of bytes that are not in it.
	Lost func(reason syscall.Errno, bytes int64)
	// Hidden is called once, at the end, if some of the output could not be shown although somebody
	// reads what is: with the number of bytes and the first reason, 0 if nothing was read for
	// showWait. With Vain it is called before Drained. May be nil.
	Hidden func(reason syscall.Errno, bytes int64)

	file    *os.File
	raw     syscall.RawConn // of file
	mu      sync.Mutex
	turn    int    // which goroutine copies; others have been left behind
	stage   stage  // what it does
	step    int    // counts the writes that it has begun and ended, and the chunks that are finished
	chunk   []byte // what has been read and is being copied
	lines   lines
	to      writer
	backlog backlog       // what of it has not been written to a terminal yet
	room    chan struct{} // delivers when it may have become smaller, or may be larger
	held    bool          // a part of a line waits for the rest, at most partWait
	read    int64         // number of bytes
	copied  int64
	target  int64 // Drained is called when copied has reached it; -1 before the worker's end
	reason  syscall.Errno
	lost    int64 // bytes that are not in Log; -1 while Log is in use
	hangs   bool  // a write to Log hangs, after which it is closed
	hidden  bool  // some could not be shown
	why     syscall.Errno
	unread  int  // bytes that were in the pipe when it was closed
	closing bool // nothing will be written to the pipe any more
	atEnd   bool // of the pipe
	done    chan struct{}
}

// stage is how far the present chunk has come. When a write hangs, another goroutine goes on with
// the stage after it.
type stage int

const (
	waiting stage = iota // for the worker
	logging
	showing
	ended
)

// Start begins to copy.
func (t *Tee) Start() {
	t.open()
	go t.run(t.turn, waiting)
}

// open prepares run.
func (t *Tee) open() {
	t.target, t.lost, t.done = -1, -1, make(chan struct{})
	t.room = make(chan struct{}, 1)
	t.lines = lines{tag: t.Tag, hold: t.Hold, framed: t.Framed}
	if t.Show != nil {
		t.lines.max, t.lines.returns = t.Show.max, t.Show.terminal
		t.backlog = backlog{to: t.Show, asIs: t.PTY, changed: t.written}
		t.to = t.Show.writer(&t.backlog)
	}
	t.file = os.NewFile(uintptr(t.From), "pipe")
	t.raw, _ = t.file.SyscallConn() // fails only without a file
}

// run copies until the end of the pipe, or until another goroutine has taken its turn. It begins
// with the given stage of the present chunk.
func (t *Tee) run(turn int, from stage) {
	pace := newPace(t.From, t.PTY)
	for ; ; from = waiting {
		var buffer *buffer
		if from == waiting {
			ok := false
			if buffer, ok = t.await(turn, pace); !ok {
				return
			}
		}
		if from <= logging && !t.perform(turn, logging) {
			return
		}
		if from <= showing && !t.perform(turn, showing) {
			return
		}
		if t.finish(turn) {
			return
		}
		if buffer != nil {
			buffers.Put(buffer)
		}
	}
}

// buffer is how much is read at once. A Tee has one only while it copies.
type buffer [128 << 10]byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// await waits for the next chunk, or for the end. It reports whether it is still its turn.
func (t *Tee) await(turn int, pace *pace) (b *buffer, mine bool) {
	n, ready := 0, false
	take := func(fd uintptr, late bool) (done bool) {
		if b, n, ready, mine = t.take(turn, int(fd), late); !ready && b != nil {
			buffers.Put(b)
		}
		return ready || !mine
	}
	if !t.PTY {
		pace.rest()
	}
	t.awaitRoom(turn)
	t.limitPause()
	for t.raw.Read(func(fd uintptr) bool {
		if t.PTY && readable(int(fd)) {
			pace.rest()
		}
		return take(fd, false)
	}) != nil { // Close, WorkerEnded, or the end of the pause
		t.endPause()
		done := false
		_ = t.raw.Control(func(fd uintptr) { done = take(fd, true) })
		if done {
			break
		}
	}
	pace.after(n)
	return b, mine
}

// awaitRoom waits until less of the stream is to be written to the terminal where it is shown.
func (t *Tee) awaitRoom(turn int) {
	for t.isFull(turn) {
		<-t.room
	}
}

func (t *Tee) isFull(turn int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	ends := t.closing || t.read < t.target // what a worker that has ended wrote is not left unread
	return t.turn == turn && !ends && t.behind() >= mostBehind
}

// behind is how much of the stream is still to be written to a terminal.
func (t *Tee) behind() int {
	if t.Show == nil || t.Show.queue == nil {
		return 0
	}
	return t.Show.queue.behind(&t.backlog)
}

// written is called when some of the stream has been written to a terminal.
func (t *Tee) written() {
	t.makeRoom()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checkDrained()
}

func (t *Tee) makeRoom() {
	select {
	case t.room <- struct{}{}:
	default:
	}
}

// limitPause lets the next wait end when a part of a line has waited long enough.
func (t *Tee) limitPause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held && !t.closing {
		_ = t.file.SetReadDeadline(time.Now().Add(partWait)) // cannot fail
	}
}

// endPause lets the next wait last. After Close there is none.
func (t *Tee) endPause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closing {
		_ = t.file.SetReadDeadline(time.Time{})
	}
}

// take reads the next chunk if there is one. It reports whether something is to be done: if it is
// late for a part of a line that waits, also without a chunk.
func (t *Tee) take(turn, fd int, late bool) (b *buffer, n int, ready, mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.turn != turn {
		return nil, 0, false, false
	}
	b = buffers.Get().(*buffer)
	n, empty, err := t.next(fd, b[:])
	if empty && t.target > t.read+int64(n) {
		t.target = t.read + int64(n)
	}
	switch {
	case n > 0:
		t.stage, t.chunk, t.read = logging, b[:n], t.read+int64(n)
		t.Tail.Write(t.chunk)
		t.Aside.WriteOther(t.chunk)
	case err == syscall.EAGAIN && !t.closing && t.held && late:
		t.stage, t.chunk = logging, nil
	case err == syscall.EAGAIN && !t.closing:
		t.checkDrained()
		return b, 0, false, true
	default:
		t.stage, t.chunk, t.atEnd = logging, nil, true
	}
	return b, max(0, n), true, true
}

// next reads. empty says that all that had been written was read.
func (t *Tee) next(fd int, b []byte) (n int, empty bool, err error) {
	if t.PTY {
		n, empty, err = readSome(fd, b)
		if empty && n == 0 {
			err = syscall.EAGAIN
		}
		return n, empty, err
	}
	err = syscall.EINTR
	for err == syscall.EINTR {
		n, err = syscall.Read(fd, b)
	}
	return n, false, err
}

// perform carries out a stage, whose write may hang, and reports whether it is still its turn.
func (t *Tee) perform(turn int, s stage) bool {
	t.mu.Lock()
	t.stage = s
	t.step++
	chunk, last, log, show := t.chunk, t.atEnd, t.Log, t.Show
	if s == logging && t.lost >= 0 {
		t.lost, log = t.lost+int64(len(chunk)), -1
	}
	hangs := t.giveUpAfter(t.limit())
	t.mu.Unlock()

	n, errno := 0, syscall.Errno(0)
	switch {
	case s == logging && log >= 0:
		n, errno = writeAll(log, chunk)
	case s == showing && show != nil:
		open, held := t.lines.open, len(t.lines.part) > 0
		if t.PTY {
			errno = t.lines.writeAsIs(t.to, chunk, len(chunk) >= bulk && !last)
		} else {
			errno = t.lines.write(t.to, chunk, last)
		}
		if t.Keeps && (len(chunk) > 0 || held || open != t.lines.open) { // else nothing was written
			t.Tail.setShown(t.lines.open, show.lines.Load())
		}
	}

	hangs.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.turn != turn && s == logging:
		syscall.Close(log)
		if t.stage != ended {
			t.lost -= int64(n) // it was only slow
		}
		return false
	case t.turn != turn:
		return false
	case s == logging && errno != 0:
		t.giveUpLog(errno, int64(len(chunk)-n))
	case errno != 0 && show.gone(errno):
		t.Show = nil
		t.endInVain()
	case errno != 0:
		t.hide(errno)
	}
	t.step++
	return true
}

// limit is how long the present stage may take. As long as the worker runs, it waits for a terminal
// or a launcher as if it wrote there itself.
func (t *Tee) limit() time.Duration {
	switch {
	case t.stage == logging && t.Log >= 0 && t.lost < 0:
		return LogWait
	case t.closing:
		return showWait
	}
	return math.MaxInt64
}

// looksPerLimit is how often it is looked within a limit whether a write hangs. Each look counts
// once: the time for which this process was stopped, in which the write could not end, does not.
const looksPerLimit = 10

// giveUpAfter leaves the goroutine behind whose turn it is, unless the step is over by then, or
// something has been read meanwhile. What it writes to is not used any more. The timer is that of
// the first look.
func (t *Tee) giveUpAfter(limit time.Duration) *time.Timer {
	step, looks, before, pause := t.step, 0, t.shownWrites(), limit/looksPerLimit
	var look func()
	look = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.step != step {
			return
		}
		if now := t.shownWrites(); now != before {
			looks, before = 0, now
		}
		if looks++; looks < looksPerLimit {
			time.AfterFunc(pause, look)
			return
		}
		t.giveUp()
	}
	return time.AfterFunc(pause, look)
}

// shownWrites counts what is written while something is shown.
func (t *Tee) shownWrites() int64 {
	if t.stage != showing || t.Show == nil {
		return 0
	}
	return t.Show.writes.Load()
}

func (t *Tee) giveUp() {
	if t.stage == logging {
		t.hangs = true
		t.giveUpLog(0, int64(len(t.chunk)))
	} else {
		t.hide(0)
		t.Show = nil
	}
	t.turn++
	t.step++
	go t.run(t.turn, t.stage+1)
}

func (t *Tee) giveUpLog(reason syscall.Errno, bytes int64) {
	t.reason, t.lost = reason, bytes
	t.Lost(reason, 0)
}

// hide is called when some of the output could not be shown. The next is tried again, unless the
// pipe is closed: a worker that wrote to a full disk itself would get an error.
func (t *Tee) hide(reason syscall.Errno) {
	if !t.hidden {
		t.hidden, t.why = true, reason
	}
	if t.Vain && reason != 0 {
		t.endInVain()
	}
}

// endInVain closes the pipe if there is no log file, so that the worker gets SIGPIPE.
func (t *Tee) endInVain() {
	if t.Log < 0 || t.lost >= 0 {
		t.atEnd, t.unread = true, inPipe(t.From)
	}
}

// reportHidden calls Hidden if there is something to report.
func (t *Tee) reportHidden() {
	bytes := t.read + int64(t.unread) - atomic.LoadInt64(&t.lines.shown)
	if t.hidden && bytes > 0 && t.Hidden != nil {
		t.Hidden(t.why, bytes)
	}
}

// finish ends the present chunk, and the pump after the last one, which it reports.
func (t *Tee) finish(turn int) (last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.turn != turn {
		return true
	}
	t.copied, t.stage = t.read, waiting
	t.held = t.PTY && t.Show != nil && len(t.lines.part) > 0
	t.step++ // Close may have come after the chunk's last write: giving up would end it twice
	if t.atEnd {
		t.reportHidden()
	}
	t.checkDrained()
	if !t.atEnd {
		return false
	}
	t.stage = ended
	t.file.Close()
	if t.Log >= 0 && !t.hangs {
		syscall.Close(t.Log)
	}
	if t.lost >= 0 {
		t.Lost(t.reason, t.lost)
	}
	close(t.done)
	return true
}

// WorkerEnded is called when the worker has ended, so that all that it wrote is in the pipe. How
// much is in a pseudoterminal is not known: it is read until there is nothing.
func (t *Tee) WorkerEnded() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.target = t.read
	switch {
	case t.stage == ended:
	case t.PTY:
		t.target += ptyMost
		_ = t.file.SetReadDeadline(time.Unix(1, 0)) // cannot fail
	default:
		t.target += int64(inPipe(t.From))
	}
	t.makeRoom()
	t.checkDrained()
}

// checkDrained calls Drained if it is time.
func (t *Tee) checkDrained() {
	all := t.copied >= t.target || t.atEnd
	if t.target >= 0 && all && !t.held && t.behind() == 0 && t.Drained != nil {
		t.Drained()
		t.Drained = nil
	}
}

// Resize gives a pseudoterminal the size of the terminal where it is shown. It reports whether it
// had another one.
func (t *Tee) Resize() (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.PTY && t.Show != nil && t.stage != ended && resize(t.From, t.Show.fd)
}

// IsIdle tells whether all that has been written to a pseudoterminal is shown.
func (t *Tee) IsIdle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	waits := t.stage == waiting && !t.held && !readable(t.From)
	return !t.PTY || t.stage == ended || waits && t.behind() == 0
}

// Close is called when nothing that writes to the pipe is left. It returns when all that is in the
// pipe has been copied, as far as that is possible.
func (t *Tee) Close() {
	t.mu.Lock()
	t.closing = true
	t.makeRoom()
	switch t.stage {
	case waiting: // possibly for a process that has the pipe too but is not of the tree
		_ = t.file.SetReadDeadline(time.Unix(1, 0)) // cannot fail
	case showing:
		t.giveUpAfter(showWait)
	}
	t.mu.Unlock()
	<-t.done
}
