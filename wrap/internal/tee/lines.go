package tee

import (
	"bytes"
	"strconv"
	"sync/atomic"
	"syscall"
)

// lines shows a stream by lines. A write has whole lines, as many as fit into max bytes, so that
// the lines of several processes that write to the same place are not split.
type lines struct {
	tag     string
	hold    bool // shows a line when it is complete
	framed  bool // shows each part as it comes, after its tag and its length
	returns bool // a carriage return completes a line too: a progress bar is shown while it changes
	max     int

	part []byte // the begin of a line that is not complete and has not been shown
	out  []byte // what is to be written next
	own  int    // how many bytes of out are of the stream: neither of tags nor an added end
	open bool   // the last byte that was shown was not the end of a line

	shown int64 // how many bytes of the stream have been written, by sync/atomic
}

// A writer shows the lines: a *Screen.
type writer interface {
	write(b []byte) (written int, errno syscall.Errno)
}

// maxHeld limits how much of a line is held. A longer one is shown in parts.
const maxHeld = 1 << 20

// write shows b, and with last also what has been held. A last line that is incomplete then gets
// its end, because others follow it.
func (l *lines) write(to writer, b []byte, last bool) (errno syscall.Errno) {
	if l.framed {
		return l.frame(to, b)
	}
	for len(b) > 0 && errno == 0 {
		n, complete := l.next(b)
		line := b[:n]
		b = b[n:]
		if !complete && l.hold && len(l.part)+len(line) <= maxHeld {
			l.part = append(l.part, line...)
			break
		}
		errno = l.add(to, line, complete)
	}
	if last && errno == 0 && l.hold && (len(l.part) > 0 || l.open) {
		errno = l.add(to, []byte{'\n'}, true)
		l.own--
	}
	if errno == 0 {
		errno = l.flush(to)
	}
	return errno
}

// writeAsIs shows b without a tag or an added end; but with hold the part of a line at its end is
// shown with what comes next.
func (l *lines) writeAsIs(to writer, b []byte, hold bool) (errno syscall.Errno) {
	n := len(b)
	if line := bytes.LastIndexByte(b, '\n') + 1; hold && line > 0 {
		n = line
	}
	l.out = append(append(l.out, l.part...), b[:n]...)
	l.part = append(l.part[:0], b[n:]...)
	if len(l.out) > 0 {
		l.open = l.out[len(l.out)-1] != '\n'
	}
	l.own = len(l.out)
	return l.flush(to)
}

// maxHeader is more than a tag and a length have in a frame.
const maxHeader = 64

// frame shows b in frames, each with one write.
func (l *lines) frame(to writer, b []byte) (errno syscall.Errno) {
	for len(b) > 0 && errno == 0 {
		n := min(len(b), l.max-maxHeader)
		l.out = append(strconv.AppendInt(append(l.out, l.tag...), int64(n), 10), '\n')
		l.out, l.own, l.open = append(l.out, b[:n]...), n, b[n-1] != '\n'
		b, errno = b[n:], l.flush(to)
	}
	return errno
}

// next returns the length of the first line of b, without tags of the lines that one write can
// have, and whether it is complete.
func (l *lines) next(b []byte) (n int, complete bool) {
	n = -1
	if l.tag == "" {
		n = bytes.LastIndexByte(b[:min(len(b), max(0, l.max-len(l.part)))], '\n')
	}
	if n < 0 {
		n = bytes.IndexByte(b, '\n')
	}
	if l.returns && n < 0 {
		n = bytes.LastIndexByte(b, '\r')
	}
	if n < 0 {
		return len(b), false
	}
	return n + 1, true
}

// add adds what has been held and the rest of the line to what is written next.
func (l *lines) add(to writer, rest []byte, complete bool) (errno syscall.Errno) {
	if len(l.out) > 0 && len(l.out)+len(l.tag)+len(l.part)+len(rest) > l.max {
		errno = l.flush(to)
	}
	if !l.open {
		l.out = append(l.out, l.tag...)
	}
	l.part = append(l.part, rest...)
	l.out = append(l.out, l.visible(l.part)...)
	l.own += len(l.part)
	l.part, l.open = l.part[:0], !complete
	return errno
}

// visible returns the part of a line that is shown. On a terminal with a tag that is only the last
// state of a progress bar: a carriage return would let the others overwrite the tag.
func (l *lines) visible(line []byte) []byte {
	if l.tag == "" || !l.returns {
		return line
	}
	return line[bytes.LastIndexByte(bytes.TrimRight(line, "\r\n"), '\r')+1:]
}

func (l *lines) flush(to writer) (errno syscall.Errno) {
	if len(l.out) > 0 {
		added := len(l.out) - l.own
		var written int
		written, errno = to.write(l.out)
		atomic.AddInt64(&l.shown, int64(max(0, written-added)))
	}
	if l.out, l.own = l.out[:0], 0; cap(l.out) > maxHeld {
		l.out = nil
	}
	return errno
}
