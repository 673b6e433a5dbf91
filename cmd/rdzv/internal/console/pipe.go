package console

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipeWriter writes to a file without waiting forever if the file is a pipe whose reader has
// stopped reading: what the reader does not accept in time is dropped.
type pipeWriter struct {
	file *os.File

	mu   sync.Mutex
	late bool // the reader did not accept the last write in time
}

// How long a write may take, and how long after one that was not accepted in time.
const (
	writeTimeout = time.Second
	lateTimeout  = time.Millisecond
)

// newPipeWriter opens a pipe again: to make f itself non-blocking would do so for all processes
// that share it. If that fails, and for all other files, it writes to f itself.
func newPipeWriter(f *os.File) *pipeWriter {
	info, err := f.Stat()
	if err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return &pipeWriter{file: f}
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return &pipeWriter{file: f}
	}
	var again *os.File
	_ = raw.Control(func(fd uintptr) { // f.Fd would make f blocking, for all who share it
		again, err = os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_WRONLY|syscall.O_NONBLOCK, 0)
	})
	if err != nil {
		return &pipeWriter{file: f}
	}
	return &pipeWriter{file: again}
}

// Write writes b, or as much as the reader accepts in time.
func (p *pipeWriter) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	timeout := writeTimeout
	if p.late {
		timeout = lateTimeout
	}
	_ = p.file.SetWriteDeadline(time.Now().Add(timeout)) // only pipes have deadlines
	n, err := p.file.Write(b)
	p.late = errors.Is(err, os.ErrDeadlineExceeded)
	return n, err
}
