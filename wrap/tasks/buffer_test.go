package tasks

import (
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// buffer has what has been written to a pipe.
type buffer struct {
	t    *testing.T
	mu   sync.Mutex
	text strings.Builder
}

// newBuffer returns a buffer and the write end of its pipe, which the caller closes.
func newBuffer(t *testing.T) (*buffer, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b, done := &buffer{t: t}, make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(b, r)
		r.Close()
	}()
	t.Cleanup(func() { <-done })
	return b, w
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// want waits until the text contains each of lines, in any order.
func (b *buffer) want(lines ...string) {
	b.t.Helper()
	for late := time.Now().Add(limit); ; time.Sleep(2 * time.Millisecond) {
		text := b.String()
		missing := slices.IndexFunc(lines, func(l string) bool { return !strings.Contains(text, l) })
		if missing < 0 {
			return
		}
		if time.Now().After(late) {
			b.t.Fatalf("timed out waiting until the output contains %q: %q", lines[missing], text)
		}
	}
}
