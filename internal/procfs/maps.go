package procfs

import (
	"bytes"
	"io/fs"
	"path"
	"strconv"
)

// Mapping is a part of the address space of a process.
type Mapping struct {
	Start, End uint64 // addresses; End is the first one behind it
	Perms      string // such as "r-xp"
	Offset     uint64 // of Start in the file
	File       string // "" if it is anonymous; also "[heap]" and the like
}

// Mappings lists the mappings of the process pid in the order of their addresses, from its file
// "maps" (proc(5)). Only a process that may trace it may read that.
func Mappings(proc fs.FS, pid int) ([]Mapping, error) {
	text, err := fs.ReadFile(proc, path.Join(strconv.Itoa(pid), "maps"))
	if err != nil {
		return nil, err
	}
	return parseMappings(text), nil
}

// parseMappings leaves out lines that it does not understand.
func parseMappings(text []byte) []Mapping {
	list := make([]Mapping, 0, bytes.Count(text, []byte("\n")))
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		var m Mapping
		addresses, rest, _ := bytes.Cut(line, []byte(" "))
		start, end, _ := bytes.Cut(addresses, []byte("-"))
		perms, rest, _ := bytes.Cut(rest, []byte(" "))
		offset, rest, _ := bytes.Cut(rest, []byte(" "))
		_, rest, _ = bytes.Cut(rest, []byte(" ")) // the device
		_, file, _ := bytes.Cut(rest, []byte(" "))
		var errs [3]error
		m.Start, errs[0] = strconv.ParseUint(string(start), 16, 64)
		m.End, errs[1] = strconv.ParseUint(string(end), 16, 64)
		m.Offset, errs[2] = strconv.ParseUint(string(offset), 16, 64)
		if errs == [3]error{} && m.Start < m.End && len(perms) == len("r-xp") {
			m.Perms, m.File = string(perms), string(bytes.TrimLeft(file, " "))
			list = append(list, m)
		}
	}
	return list
}
