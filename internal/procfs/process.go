// Package procfs reads information about processes from /proc. It has one parser per file format,
// used by all packages except envmap.
//
// It is linked into processes that start before most packages are initialised, so it imports only
// what is initialised before "reflect". Parsers that need more, such as that of the TCP connection
// tables, are in packages below this one.
package procfs

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strconv"
	"syscall"
)

// A Process is the content of /proc/PID/stat.
type Process struct {
	PID, Parent int
	Name        string // command name, at most 15 bytes
	State       byte   // R, S, D, T, t, Z or X
	Start       uint64 // in clock ticks since boot; with PID it identifies a process uniquely
	CPU         uint64 // clock ticks that its threads have run, in user mode and in the kernel
}

// Read returns what proc contains about the process pid. The error is syscall.ESRCH if there is no
// such process.
func Read(proc fs.FS, pid int) (Process, error) {
	return read(proc, path.Join(strconv.Itoa(pid), "stat"))
}

// ReadThread returns what proc contains about a thread of the process pid, as Read does.
func ReadThread(proc fs.FS, pid, tid int) (Process, error) {
	return read(proc, path.Join(strconv.Itoa(pid), "task", strconv.Itoa(tid), "stat"))
}

func read(proc fs.FS, file string) (Process, error) {
	text, err := fs.ReadFile(proc, file)
	if errors.Is(err, fs.ErrNotExist) {
		return Process{}, syscall.ESRCH
	}
	if err != nil {
		return Process{}, err
	}
	return parse(text)
}

// IsStopped tells whether a process is stopped by a signal. One that a debugger has stopped is not:
// its state is 't'.
func IsStopped(proc fs.FS, pid int) bool {
	p, err := Read(proc, pid)
	return err == nil && p.State == 'T'
}

var errStat = errors.New("malformed /proc/PID/stat")

// parse reads the text of /proc/PID/stat (proc(5)). The command name is in parentheses and may
// contain any character, including parentheses.
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
	user, err4 := strconv.ParseUint(string(fields[11]), 10, 64)
	system, err5 := strconv.ParseUint(string(fields[12]), 10, 64)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return Process{}, errStat
	}
	return Process{
		PID: pid, Parent: parent, Name: string(text[open+1 : end]), State: fields[0][0],
		Start: start, CPU: user + system,
	}, nil
}

// maxAncestors is the largest number of ancestors that are returned. There may be shells and
// wrappers between the launcher's daemon and an agent.
const maxAncestors = 32

// Ancestors returns the parent of pid, the parent's parent and so on, at most 32 processes. The
// list ends at a process that proc does not show.
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

// Arguments returns the command line of a process; nil if it cannot be read.
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
