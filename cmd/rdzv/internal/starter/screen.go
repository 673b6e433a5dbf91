package starter

import (
	"bytes"
	"os"
	"sync"
	"time"

	"rdzv/cmd/rdzv/internal/console"
)

const (
	// partWait is how long the beginning of a line waits for the rest: then it is shown, as a prompt
	// or a progress bar has to be.
	partWait = 100 * time.Millisecond
	// maxHeld limits how much of a line is held. A longer one is shown in parts.
	maxHeld = 1 << 20
)

// A screen is where a stream of the workers is shown. What each of them writes is shown in whole
// lines, as far as they are written soon.
type screen struct {
	to       *os.File
	terminal bool                               // a carriage return ends a line too
	erases   bool                               // and what it leaves can be erased
	tag      func(rank int, host string) string // what is before each line; nil is nothing

	mu     sync.Mutex
	lines  map[source]*line
	open   *line // is on the screen without its end
	bar    bool  // the last byte shown was a carriage return
	unread bool  // nobody reads it any more
}

// source is who writes.
type source struct{ node, stream, rank int }

// line is what a worker has begun to write.
type line struct {
	tag  string
	held []byte
	late *time.Timer // shows held; nil if it is empty
}

// newScreen is a screen that leads to a file.
func newScreen(to *os.File, s console.Setting, tag func(int, string) string) *screen {
	d := console.DestinationOf(to, s)
	return &screen{
		to: to, terminal: d.IsTerminal(), erases: d.Rewrites(), tag: tag, lines: map[source]*line{},
	}
}

// write shows what a worker on a host has written. The error says that nobody reads it.
func (s *screen) write(from source, host string, text []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[from]
	if l == nil {
		l = &line{}
		if s.tag != nil {
			l.tag = s.tag(from.rank, host)
		}
		s.lines[from] = l
	}
	end := s.complete(text)
	if end > 0 && len(l.held) == 0 {
		s.show(l, text[:end])
	} else if end > 0 {
		s.show(l, append(l.held, text[:end]...))
		l.held = nil
	}
	if l.held = append(l.held, text[end:]...); len(l.held) > maxHeld {
		s.show(l, l.held)
		l.held = nil
	}
	s.wait(l)
	if s.unread {
		return os.ErrClosed
	}
	return nil
}

// complete is the length of the complete lines in a text.
func (s *screen) complete(text []byte) int {
	if s.terminal {
		return bytes.LastIndexAny(text, "\r\n") + 1
	}
	return bytes.LastIndexByte(text, '\n') + 1
}

// wait shows what is held of a line if its rest does not come soon.
func (s *screen) wait(l *line) {
	if len(l.held) == 0 && l.late != nil {
		l.late.Stop()
		l.late = nil
	}
	if len(l.held) > 0 && l.late == nil {
		l.late = time.AfterFunc(partWait, func() { s.showPart(l) })
	}
}

// showPart shows what is held of a line, unless the line of another worker is on the screen: two
// progress bars would interrupt each other all the time.
func (s *screen) showPart(l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.late = nil
	if len(l.held) > 0 && (s.open == nil || s.open == l) {
		s.show(l, l.held)
		l.held = nil
	}
	s.wait(l)
}

// flush shows, with ends, what is held of the lines of a node; of all nodes if it is negative.
func (s *screen) flush(node int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for from, l := range s.lines {
		if (node < 0 || from.node == node) && len(l.held) > 0 {
			s.show(l, append(l.held, '\n'))
			l.held = nil
			s.wait(l)
		}
	}
	if node < 0 && s.open != nil {
		s.put([]byte{'\n'})
		s.open = nil
	}
}

// show shows a part of what a worker has written: whole lines, or the last one without its end.
func (s *screen) show(l *line, text []byte) {
	var out []byte
	switch {
	case s.open != nil && s.open != l:
		out, s.open = append(out, '\n'), nil
	case s.bar && s.erases && text[0] != '\n':
		out = append(out, "\x1b[K"...)
	}
	if l.tag == "" {
		out = append(out, text...)
	} else {
		out = s.tagged(out, l, text)
	}
	s.open, s.bar = nil, s.terminal && text[len(text)-1] == '\r'
	if s.complete(text) < len(text) {
		s.open = l
	}
	s.put(out)
}

// tagged appends a text with the worker's tag before each line. On a terminal only the last state
// of a progress bar is shown: the earlier ones would overwrite the tag.
func (s *screen) tagged(out []byte, l *line, text []byte) []byte {
	for part := range bytes.Lines(text) {
		if s.open != l {
			out = append(out, l.tag...)
		}
		if s.open = nil; s.terminal {
			part = part[bytes.LastIndexByte(bytes.TrimRight(part, "\r\n"), '\r')+1:]
		}
		out = append(out, part...)
	}
	return out
}

func (s *screen) put(text []byte) {
	if !s.unread {
		_, err := s.to.Write(text)
		s.unread = err != nil
	}
}

// End tells whether it ends within a line, which the caller then ends. With Wrote and Shows, it is
// what a console that leads to the same place needs to know.
func (s *screen) End() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	within := s.open != nil
	s.open = nil
	return within
}

func (s *screen) Wrote(string) {}

func (s *screen) Shows([]string, int) bool { return false }
