package runner

import (
	"io"
	"os"
	"strings"
	"sync"
	"testing"
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

// want waits until the text contains what.
func (b *buffer) want(what string) {
	b.t.Helper()
	eventually(b.t, "the output contains "+what, func() bool {
		return strings.Contains(b.String(), what)
	})
}
