package procfs

import (
	"bytes"
	"io/fs"
	"path"
	"strconv"
)

// ArgumentMemory returns where the arguments of the process pid are in its memory (arg_start and
// arg_end in /proc/PID/stat, Linux 3.5). Only a process that may trace it may read that; size is 0
// if it is not known.
func ArgumentMemory(proc fs.FS, pid int) (at, size uintptr) {
	text, err := fs.ReadFile(proc, path.Join(strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, 0
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const start = 45 // counted from the state
	if len(fields) <= start+1 {
		return 0, 0
	}
	from, err1 := strconv.ParseUint(string(fields[start]), 10, 64)
	to, err2 := strconv.ParseUint(string(fields[start+1]), 10, 64)
	if err1 != nil || err2 != nil || from == 0 || to <= from {
		return 0, 0
	}
	return uintptr(from), uintptr(to - from)
}
