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

// pipeWriter is a stream that does not wait for ever for a reader that has stopped
// reading: what it does not take in time is lost to it.
type pipeWriter struct {
	file *os.File

	mu    sync.Mutex
	stuck bool // it has not been in time before
}

// How long a reader may take, and how long once it has not been in time.
const (
	readerTime = time.Second
	stuckTime  = time.Millisecond
)

// newPipeWriter is f, which is watched if it is a pipe. To make a pipe wait for nobody
// would do so for all who share it: it is opened anew for that. Where it cannot be,
// and for all other files, it is f itself.
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
	_ = raw.Control(func(fd uintptr) { // f.Fd would change its mode, for all who share it
		again, err = os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_WRONLY|syscall.O_NONBLOCK, 0)
	})
	if err != nil {
		return &pipeWriter{file: f}
	}
	return &pipeWriter{file: again}
}

// Write writes b, or what of it the reader takes in time.
func (p *pipeWriter) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	limit := readerTime
	if p.stuck {
		limit = stuckTime
	}
	_ = p.file.SetWriteDeadline(time.Now().Add(limit)) // an error means that it is no pipe
	n, err := p.file.Write(b)
	p.stuck = errors.Is(err, os.ErrDeadlineExceeded)
	return n, err
}
