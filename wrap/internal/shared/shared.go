// Package shared makes memory that processes share and that has no name in a file system.
package shared

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// New returns a file with such memory, which is zero. The name is only for people.
func New(name string, size int) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), name)
	if err := file.Truncate(int64(size)); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// Map maps size bytes of a file of New, with syscall.PROT_READ or PROT_WRITE too. A file that is
// shorter is refused: to read behind its end would end this process.
func Map(file *os.File, size, access int) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < int64(size) {
		return nil, errors.New("the shared memory is too small")
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	var memory []byte
	errControl := raw.Control(func(fd uintptr) {
		if memory, err = syscall.Mmap(int(fd), 0, size, access, syscall.MAP_SHARED); err == nil {
			keep(memory, fd)
		}
	})
	return memory, errors.Join(err, errControl)
}

// Unmap ends what Map has begun.
func Unmap(memory []byte) {
	drop(memory)
	_ = syscall.Munmap(memory)
}
