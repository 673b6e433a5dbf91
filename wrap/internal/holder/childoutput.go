package holder

import (
	"syscall"
	"unsafe"
)

// See child.go for what the functions of this file may do.

// output lets the holder complete the log of a worker if the agent is killed.
type output struct {
	pipe, log uintptr // none is none
	chunk     *Chunk
}

// drain writes to the log what the agent, which has ended, has not.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (o *output) drain(b *buffer) {
	if o.log == none {
		return
	}
	if o.chunk != nil {
		o.writeChunk()
	}
	for {
		n, errno := sys(syscall.SYS_READ, o.pipe, b.address(), bufferSize, 0)
		if errno != 0 || n == 0 || !write(o.log, b.address(), n) {
			return // EAGAIN: another process has the pipe too
		}
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func (o *output) writeChunk() {
	bytes := unsafe.Pointer(&o.chunk.Bytes)
	n := uintptr(ChunkSize)
	for n > 0 && *(*byte)(unsafe.Add(bytes, n-1)) == Fill {
		n--
	}
	const end = 2 // SEEK_END
	size, errno := sys(syscall.SYS_LSEEK, o.log, 0, end, 0)
	if errno != 0 || int64(size) < o.chunk.Size {
		return // it is no file, or another process has changed it
	}
	if done := size - uintptr(o.chunk.Size); done < n {
		write(o.log, uintptr(bytes)+done, n-done)
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func write(fd, from, size uintptr) bool {
	for size > 0 {
		n, errno := sys(syscall.SYS_WRITE, fd, from, size, 0)
		if errno != 0 || n == 0 {
			return false
		}
		from, size = from+n, size-n
	}
	return true
}

// drop closes what drain would use.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (o *output) drop() {
	if o.log != none {
		sys(syscall.SYS_CLOSE, o.log, 0, 0, 0)
		sys(syscall.SYS_CLOSE, o.pipe, 0, 0, 0)
	}
	o.log, o.pipe = none, none
}
