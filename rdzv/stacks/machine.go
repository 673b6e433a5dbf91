package stacks

import (
	"debug/elf"
	"encoding/binary"
	"io"
	"io/fs"
	"path"
	"runtime"
	"strconv"
)

// ownMachine is the architecture of this program, if callOf knows its system calls. All of these
// are little-endian.
func ownMachine() (_ elf.Machine, known bool) {
	switch runtime.GOARCH {
	case "amd64":
		return elf.EM_X86_64, true
	case "arm64":
		return elf.EM_AARCH64, true
	}
	return elf.EM_NONE, false
}

// foreign reports whether the system calls of a process have the numbers of another architecture
// than those of this program: a 32-bit program, or one that an emulator runs, or any other if this
// program itself is emulated (qemu-user).
func foreign(proc fs.FS, pid int) bool {
	own, known := ownMachine()
	exe, err := proc.Open(path.Join(strconv.Itoa(pid), "exe"))
	if !known || err != nil {
		return false
	}
	defer exe.Close()
	var head [20]byte // e_ident, e_type, e_machine
	_, err = io.ReadFull(exe, head[:])
	return err == nil && elf.Machine(binary.LittleEndian.Uint16(head[18:])) != own
}
