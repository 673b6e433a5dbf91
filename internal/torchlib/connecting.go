package torchlib

import (
	"encoding/binary"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
)

// Connecting tells whether the main thread of a process waits until it tries again to connect to
// torch's store: it sleeps in a call by torch's libraries, which do that for nothing else there
// (c10d's sockets, torch 1.13 and 2.6). The refused attempts themselves are over too soon to be
// seen. It is false if this process may not trace the other one (ptrace(2)).
func Connecting(proc fs.FS, pid int) bool {
	dir := strconv.Itoa(pid)
	text, err := fs.ReadFile(proc, path.Join(dir, "syscall"))
	words := strings.Fields(string(text))
	if err != nil || len(words) != 9 { // the call, six arguments, stack pointer, program counter
		return false
	}
	sleeps := []string{strconv.Itoa(unix.SYS_NANOSLEEP), strconv.Itoa(unix.SYS_CLOCK_NANOSLEEP)}
	stack, err1 := strconv.ParseUint(words[7], 0, 64)
	code, err2 := strconv.ParseUint(words[8], 0, 64)
	if !slices.Contains(sleeps, words[0]) || err1 != nil || err2 != nil {
		return false
	}
	list, err := procfs.Mappings(proc, pid)
	if err != nil {
		return false
	}
	caller := callerOf(list, fileAt(list, code), words64(proc, path.Join(dir, "mem"), stack))
	return strings.HasPrefix(path.Base(caller), "libtorch")
}

// callerOf is the file with the code that has called the C library: the first one on the stack. The
// C++ library may be between them.
func callerOf(list []procfs.Mapping, libc string, stack []uint64) string {
	for _, word := range stack {
		file := fileAt(list, word)
		if file != "" && file != libc && !strings.HasPrefix(path.Base(file), "libstdc++.so") {
			return file
		}
	}
	return ""
}

// fileAt is the file with the code at an address; "" if there is none.
func fileAt(list []procfs.Mapping, address uint64) string {
	i, _ := slices.BinarySearchFunc(list, address, func(m procfs.Mapping, address uint64) int {
		if m.End <= address {
			return -1
		}
		return 1
	})
	if i == len(list) || address < list[i].Start || !strings.Contains(list[i].Perms, "x") {
		return ""
	}
	return list[i].File
}

// frames is how many words at the top of a stack are searched: the frames of the C library are
// small.
const frames = 128

// words64 reads words from the memory of a process.
func words64(proc fs.FS, mem string, address uint64) []uint64 {
	f, err := proc.Open(mem)
	if err != nil {
		return nil
	}
	defer f.Close()
	memory, is := f.(io.ReaderAt)
	if !is {
		return nil
	}
	b := make([]byte, 8*frames)
	n, _ := memory.ReadAt(b, int64(address)) // less at the end of the stack
	words := make([]uint64, n/8)
	for i := range words {
		words[i] = binary.NativeEndian.Uint64(b[8*i:])
	}
	return words
}
