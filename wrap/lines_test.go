package wrap

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// lineReader hands out the lines of a pipe as they come.
type lineReader struct {
	t     *testing.T
	lines chan string
}

// lines returns a file to write to and the reader of its lines.
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

// read hands out what comes from r until it ends. TrimRight: a terminal ends a line by \r\n, or \r\r\n.
func (l lineReader) read(r io.Reader) {
	defer close(l.lines)
	rest, b := "", make([]byte, 4096)
	for {
		n, err := r.Read(b)
		rest += string(b[:n])
		for line, after, ok := strings.Cut(rest, "\n"); ok; line, after, ok = strings.Cut(rest, "\n") {
			l.lines <- strings.TrimRight(line, "\r")
			rest = after
		}
		if err != nil {
			return
		}
	}
}

// next returns the next line, within 20 s.
func (l lineReader) next() string {
	l.t.Helper()
	select {
	case s, ok := <-l.lines:
		if !ok {
			l.t.Fatal("no more lines")
		}
		return s
	case <-time.After(20 * time.Second):
		l.t.Fatal("no line came")
	}
	return ""
}

// want takes one line for each of texts, in their order.
func (l lineReader) want(texts ...string) {
	l.t.Helper()
	for _, text := range texts {
		if got := l.next(); got != text {
			l.t.Fatalf("line %q, want %q", got, text)
		}
	}
}

// await skips lines until one is text.
func (l lineReader) await(text string) {
	l.t.Helper()
	for l.next() != text {
	}
}
