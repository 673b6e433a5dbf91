package wrap

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// lineReader returns the lines of a pipe.
type lineReader struct {
	t     *testing.T
	lines chan string
}

// lines returns the write end of a pipe and the reader of its lines.
func lines(t *testing.T) (*os.File, lineReader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l := lineReader{t, make(chan string, 100000)}
	done := make(chan struct{})
	go func() { defer close(done); l.read(r) }()
	t.Cleanup(func() { w.Close(); <-done; r.Close() })
	return w, l
}

// read reads lines from r to its end. A terminal ends a line with \r\n or \r\r\n.
func (l lineReader) read(r io.Reader) {
	defer close(l.lines)
	rest, b := "", make([]byte, 4096)
	for {
		n, err := r.Read(b)
		rest += string(b[:n])
		for strings.Contains(rest, "\n") {
			line, after, _ := strings.Cut(rest, "\n")
			l.lines <- strings.TrimRight(line, "\r")
			rest = after
		}
		if err != nil {
			return
		}
	}
}

// next returns the next line. It waits at most 20 s.
func (l lineReader) next() string {
	l.t.Helper()
	select {
	case s, ok := <-l.lines:
		if !ok {
			l.t.Fatal("no line: end of output")
		}
		return s
	case <-time.After(20 * time.Second):
		l.t.Fatal("no line within 20 s")
	}
	return ""
}

// want fails the test unless the next lines are texts.
func (l lineReader) want(texts ...string) {
	l.t.Helper()
	for _, text := range texts {
		if got := l.next(); got != text {
			l.t.Fatalf("got line %q, want %q", got, text)
		}
	}
}

// await skips lines up to the line text.
func (l lineReader) await(text string) {
	l.t.Helper()
	for l.next() != text {
	}
}
