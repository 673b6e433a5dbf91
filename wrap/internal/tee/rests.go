package tee

import (
	"bytes"
	"syscall"
	"time"
)

// rests lets a launcher at the other end of a pseudoterminal read what has been written before more
// is, because a read of the launcher ends inside a line if more than ptyRead bytes are unread.
// Nothing tells the writer what has been read.
//
// So that output in bulk is not slowed down, the rests add up to at most 1/restShare of the time.
// Without output mostSaved is saved up. Each rest takes a part of what is saved: a traceback has
// rests that are long enough on a busy machine too, and long output has short ones.
type rests struct {
	now   func() time.Time
	sleep func(time.Duration)

	unread  int       // how many bytes the launcher may not have read
	written time.Time // when the last write ended
	full    time.Time // when mostSaved will be saved again
}

const (
	// A write of up to this length to a pseudoterminal is one chunk of the kernel's
	// (TTY_BUFFER_PAGE), so that what can be read ends with a line.
	ptyBuf = 1024
	// ptyRead is how much Open MPI reads at once.
	ptyRead = 4096

	restShare = 20
	mostSaved = 50 * time.Millisecond
	restPart  = 2 // a rest is this part of what is saved
	leastRest = 500 * time.Microsecond
)

// before is called before whole lines are written. It returns how many bytes of them to write now:
// all if too little is saved for a rest.
func (r *rests) before(lines []byte) (n int) {
	n = firstLines(lines)
	begin := r.now()
	saved := mostSaved - max(0, r.full.Sub(begin))/restShare
	rest := saved/restPart - begin.Sub(r.written)
	switch {
	case saved/restPart < leastRest:
		return len(lines)
	case rest <= 0:
		r.unread = 0
	case r.unread+n > ptyRead:
		r.sleep(rest)
		end := r.now() // may be later than asked for
		r.full = end.Add(restShare * (mostSaved - saved + end.Sub(begin)))
		r.unread = 0
	}
	return n
}

// after is called after a write of n bytes.
func (r *rests) after(n int) { r.unread, r.written = r.unread+n, r.now() }

// firstLines is the length of the lines that one write of up to ptyBuf bytes can have.
func firstLines(lines []byte) (n int) {
	if n = bytes.LastIndexByte(lines[:min(len(lines), ptyBuf)], '\n'); n < 0 {
		n = bytes.IndexByte(lines, '\n')
	}
	if n < 0 {
		return len(lines)
	}
	return n + 1
}

// sleep is more accurate than time.Sleep, which takes a millisecond if the program has nothing else
// to do.
func sleep(d time.Duration) {
	for t := syscall.NsecToTimespec(int64(d)); syscall.Nanosleep(&t, &t) == syscall.EINTR; {
	}
}
