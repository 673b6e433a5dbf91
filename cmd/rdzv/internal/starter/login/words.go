package login

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
)

// keptWords is how much of what ssh writes is kept for an error: its end.
const keptWords = 8 << 10

// words is what ssh writes to stderr.
type words struct {
	mu   sync.Mutex
	kept []byte
	pass func(line []byte) // nil: nobody gets it
	end  chan struct{}     // closed when there is no more
}

func newWords() *words { return &words{end: make(chan struct{})} }

// read reads lines until the end. A line that is too long counts as several.
func (w *words) read(stderr io.Reader) {
	defer close(w.end)
	r := bufio.NewReaderSize(stderr, 16<<10)
	for {
		line, err := r.ReadSlice('\n')
		if len(line) > 0 {
			w.line(append(bytes.TrimRight(line, "\r\n"), '\n'))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func (w *words) line(line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = keep(w.kept, line, keptWords)
	if w.pass != nil {
		w.pass(line)
	}
}

// passOn gives all further lines to pass.
func (w *words) passOn(pass func(line []byte)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept, w.pass = nil, pass
}

func (w *words) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.kept)
}

// keep is the last bytes of what was kept and what is new.
func keep(kept, fresh []byte, limit int) []byte {
	kept = append(kept, fresh...)
	return kept[max(len(kept)-limit, 0):]
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
