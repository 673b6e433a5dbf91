package tee

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"
	"unsafe"
)

// Screen is where the output of workers is shown: a terminal, a pipe or a file. Several Tees may
// write to it.
type Screen struct {
	fd       int
	max      int // the length of a write, except for longer lines
	terminal bool
	rests    *rests // nil if what is written need not be read in whole lines
	queue    *queue // of a terminal without rests; nil writes at once
	mu       sync.Mutex
	closed   atomic.Bool
	bar      int          // the length of a progress bar on which the cursor of the terminal is
	writes   atomic.Int64 // how many there have been
	lines    atomic.Int64 // how many that are not empty have been written
}

// A write of up to this length to a pipe is not mixed with those of others (PIPE_BUF, pipe(7)).
const pipeBuf = 4096

// bulkBuf is the length of other writes.
const bulkBuf = 64 << 10

// NewScreen returns the Screen of a descriptor, which it keeps. If relayed, a launcher reads it if
// it is a pipe, and mixes what each of its reads returns with the output of other nodes.
//
// A pipe of a single page then makes it read whole lines: as long as the page has something unread,
// a write is appended if it fits there as a whole, and waits otherwise (pipe_write in the kernel).
// So the page always has whole lines, and a read of a page, as those of Open MPI, returns them.
// Between writes to a pseudoterminal there are rests instead.
func NewScreen(fd int, relayed bool) *Screen {
	s := &Screen{fd: fd, max: bulkBuf}
	var info syscall.Stat_t
	if syscall.Fstat(fd, &info) == nil && info.Mode&syscall.S_IFMT == syscall.S_IFIFO {
		s.max = pipeBuf
		if relayed {
			fcntl(fd, setPipeSize, pipeBuf) // fails if there is more in it, then lines may be split
		}
	}
	var termios syscall.Termios
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.TCGETS,
		uintptr(unsafe.Pointer(&termios)))
	s.terminal = errno == 0
	switch {
	case s.terminal && relayed:
		s.max, s.rests = bulkBuf, &rests{now: time.Now, sleep: sleep}
		endProcessing(fd, termios)
	case s.terminal:
		s.max, s.queue = pipeBuf, newQueue(s.put)
	}
	return s
}

// endProcessing switches off the processing of what is written to a terminal if that changes
// nothing but has the kernel look at each byte. So it is on the pseudoterminals of Open MPI, which
// leaves OPOST, and switches off ONLCR and OCRNL (iof_base_setup.c): bulk output is a sixth faster.
func endProcessing(fd int, termios syscall.Termios) {
	if termios.Oflag != syscall.OPOST {
		return
	}
	termios.Oflag = 0
	// If that fails, output is only slower.
	syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.TCSETS, uintptr(unsafe.Pointer(&termios)))
}

// writer is where a stream is written that is shown here.
func (s *Screen) writer(of *backlog) writer {
	if s.queue == nil {
		return s
	}
	return of
}

// write writes a part of a stream when the terminal takes it.
func (b *backlog) write(text []byte) (written int, errno syscall.Errno) {
	s := b.to
	errno = s.queue.add(text, b, func() (before []byte) {
		s.lines.Add(filledLines(text))
		if erase := s.eraser(text); erase > 0 && !b.asIs {
			before = append(bytes.Repeat([]byte{' '}, erase), '\r')
		}
		return before
	})
	if errno != 0 {
		return 0, errno
	}
	return len(text), 0
}

// put writes to a terminal.
func (s *Screen) put(b []byte) (errno syscall.Errno) {
	defer blockOutputStop()()
	_, errno = writeAll(s.fd, b)
	return errno
}

func (s *Screen) write(b []byte) (written int, errno syscall.Errno) {
	s.mu.Lock()
	defer s.unlock()
	if s.terminal {
		defer blockOutputStop()()
	}
	if erase := s.eraser(b); erase > 0 {
		blank := append(bytes.Repeat([]byte{' '}, erase), '\r')
		if _, errno = writeAll(s.fd, blank); errno != 0 {
			return 0, errno
		}
	}
	for written < len(b) && errno == 0 {
		n := len(b) - written
		if s.rests != nil {
			n = s.rests.before(b[written:])
		}
		n, errno = writeAll(s.fd, b[written:written+n])
		written += n
		s.writes.Add(1)
		if s.rests != nil {
			s.rests.after(n)
		}
	}
	s.lines.Add(filledLines(b))
	return written, errno
}

// filledLines is the number of lines that are not empty.
func filledLines(b []byte) int64 {
	return int64(bytes.Count(b, []byte{'\n'}) - bytes.Count(b, []byte("\n\n")))
}

// Close closes the descriptor, when everything has been written, or a write to it that hangs has
// ended.
func (s *Screen) Close() {
	if s.queue != nil {
		s.queue.close()
		go func() { <-s.queue.done; syscall.Close(s.fd) }()
		return
	}
	s.closed.Store(true)
	if s.mu.TryLock() {
		s.unlock()
	}
}

// Await waits, after Close, until a terminal has got everything, as long as it takes something
// within showWait, and reports whether it has: one that Ctrl-S has stopped takes nothing.
func (s *Screen) Await() bool { return s.queue == nil || s.queue.await(showWait) }

func (s *Screen) unlock() {
	if s.closed.Load() && s.fd >= 0 {
		syscall.Close(s.fd)
		s.fd = -1
	}
	s.mu.Unlock()
}

// blockOutputStop lets this thread write to a terminal although this process is not in the
// foreground (stty tostop), until undo is called.
func blockOutputStop() (undo func()) {
	const block, set, size = 0, 2, 8
	stop, before := uint64(1)<<(syscall.SIGTTOU-1), uint64(0)
	runtime.LockOSThread()
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, block, uintptr(unsafe.Pointer(&stop)),
		uintptr(unsafe.Pointer(&before)), size, 0, 0)
	return func() {
		syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, set, uintptr(unsafe.Pointer(&before)), 0, size,
			0, 0)
		runtime.UnlockOSThread()
	}
}

// eraser is how many columns of a progress bar b would not overwrite, and notes the one of b.
func (s *Screen) eraser(b []byte) int {
	before := s.bar
	if s.bar = 0; s.terminal && bytes.HasSuffix(b, []byte{'\r'}) {
		state := b[:len(b)-1]
		s.bar = columns(state[bytes.LastIndexAny(state, "\r\n")+1:])
	}
	if end := bytes.IndexAny(b, "\r\n"); end >= 0 && columns(b[:end]) >= before {
		return 0
	}
	return before
}

// columns is how many columns a text takes that may have colours.
func columns(text []byte) (n int) {
	for {
		begin := bytes.Index(text, []byte("\x1b["))
		if begin < 0 {
			return n + utf8.RuneCount(text)
		}
		n, text = n+utf8.RuneCount(text[:begin]), text[begin+2:]
		isEnd := func(r rune) bool { return r >= '@' && r <= '~' }
		text = text[min(len(text), 1+bytes.IndexFunc(text, isEnd)):]
	}
}

// gone tells whether errno says that nobody reads the screen any more.
func (s *Screen) gone(errno syscall.Errno) bool {
	return errno == syscall.EPIPE || errno == syscall.ECONNRESET || errno == syscall.EIO && s.terminal
}

// writeAll writes b with one write, unless the kernel takes only a part of it, and returns how much
// it has written.
func writeAll(fd int, b []byte) (written int, errno syscall.Errno) {
	for written < len(b) {
		n, err := syscall.Write(fd, b[written:])
		switch err {
		case nil:
			written += n
		case syscall.EINTR:
		case syscall.EAGAIN: // others have made the descriptor non-blocking
			poll(fd, pollOut)
		default:
			errno, _ = err.(syscall.Errno) // syscall.Write returns nothing else
			return written, errno
		}
	}
	return written, 0
}
