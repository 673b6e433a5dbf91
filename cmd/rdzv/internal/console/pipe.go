package console

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// pipeWriter writes to a file without waiting forever if the file is a pipe whose reader has
// stopped reading: what the reader does not accept in time is dropped. It must not be used by
// several goroutines at once.
type pipeWriter struct {
	file *os.File
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
	w := &pipeWriter{file: f}
	info, err := f.Stat()
	if err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return w
	}
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { // f.Fd would make f blocking, for all who share it
			name := fmt.Sprintf("/proc/self/fd/%d", fd)
			if again, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
				w.file = again
			}
		})
	}
	return w
}

// Write writes b, or as much as the reader accepts in time.
func (p *pipeWriter) Write(b []byte) (int, error) {
	timeout := writeTimeout
	if p.late {
		timeout = lateTimeout
	}
	_ = p.file.SetWriteDeadline(time.Now().Add(timeout)) // only pipes have deadlines
	n, err := p.file.Write(b)
	p.late = errors.Is(err, os.ErrDeadlineExceeded)
	return n, err
}
