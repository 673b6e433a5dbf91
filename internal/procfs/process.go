package procfs

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"
	"syscall"
)

// System is the /proc of this system, for those whose processes are real.
var System = os.DirFS("/proc")

// A Process is what /proc/PID/stat tells of one.
type Process struct {
	PID, Parent int
	Name        string // as ps shows it, at most 15 bytes
	State       byte   // R, S, D, T, t, Z, X
	Start       uint64 // in clock ticks since boot: with the pid, it names one process for good
}

// Read returns what proc tells of pid, or the error of reading it: syscall.ESRCH when there is no
// such process.
func Read(proc fs.FS, pid int) (Process, error) {
	text, err := fs.ReadFile(proc, path.Join(strconv.Itoa(pid), "stat"))
	if errors.Is(err, fs.ErrNotExist) {
		return Process{}, syscall.ESRCH
	}
	if err != nil {
		return Process{}, err
	}
	return parse(text)
}

var errStat = errors.New("not a stat of a process")

// parse reads /proc/PID/stat (proc(5)). The name is in parentheses and may hold any character,
// parentheses too.
func parse(text []byte) (Process, error) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return Process{}, errStat
	}
	fields := bytes.Fields(text[end+1:])
	if len(fields) < 20 {
		return Process{}, errStat
	}
	pid, err1 := strconv.Atoi(string(bytes.TrimSpace(text[:open])))
	parent, err2 := strconv.Atoi(string(fields[1]))
	start, err3 := strconv.ParseUint(string(fields[19]), 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return Process{}, errStat
	}
	return Process{PID: pid, Parent: parent, Name: string(text[open+1 : end]), State: fields[0][0], Start: start}, nil
}

// maxAncestors is how far up to look; shells and wrappers may stand between the daemon and us.
const maxAncestors = 32

// Ancestors lists the parents of pid, the nearest first.
func Ancestors(proc fs.FS, pid int) []Process {
	var list []Process
	p, err := Read(proc, pid)
	for err == nil && p.Parent > 0 && len(list) < maxAncestors {
		p, err = Read(proc, p.Parent)
		if err == nil {
			list = append(list, p)
		}
	}
	return list
}

// Arguments gives the command line of a process.
func Arguments(proc fs.FS, pid int) []string {
	text, err := fs.ReadFile(proc, path.Join(strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return nil
	}
	var args []string
	for arg := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte{0}), []byte{0}) {
		args = append(args, string(arg))
	}
	return args
}
