// Package proctree lists the children of this process, adopted ones included.
//
// It is linked into the watchdog, so it imports only what is ready before any other package's init.
package proctree

import (
	"os"
	"strconv"
	"syscall"
)

// Children returns the pids of the direct children of this process, zombies included. A child that is born, dies
// or is adopted meanwhile may be missing: ask again until the answer stays the same.
//
// The source is /proc/self/task/*/children, and where the kernel was built without it (CONFIG_PROC_CHILDREN),
// the parent field of every /proc/*/stat.
func Children() ([]int, error) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, task := range tasks {
		text, err := os.ReadFile(childrenFile(task.Name()))
		if err == nil {
			pids = appendNumbers(pids, text)
		} else if _, gone := os.Stat("/proc/self/task/" + task.Name()); gone == nil {
			return scan(os.Getpid())
		}
	}
	return pids, nil
}

// ChildrenOf is Children for a process whose children all belong to the same thread, of which it needs one file only.
func ChildrenOf(thread int) ([]int, error) {
	text, err := os.ReadFile(childrenFile(strconv.Itoa(thread)))
	if err != nil {
		return scan(os.Getpid())
	}
	return appendNumbers(nil, text), nil
}

func childrenFile(thread string) string { return "/proc/self/task/" + thread + "/children" }

// appendNumbers appends the decimal numbers of text, which are separated by blanks.
func appendNumbers(to []int, text []byte) []int {
	n, in := 0, false
	for _, c := range text {
		if c >= '0' && c <= '9' {
			n, in = n*10+int(c-'0'), true
			continue
		}
		if in {
			to = append(to, n)
		}
		n, in = 0, false
	}
	if in {
		to = append(to, n)
	}
	return to
}

// scan looks through all processes for those whose parent is parent.
func scan(parent int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if s, err := Read(pid); err == nil && s.Parent == parent {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Stat is what /proc/PID/stat says of a process.
type Stat struct {
	Name   string // at most 15 bytes
	State  byte   // R, S, D, T, t, Z, X
	Parent int
	Start  uint64 // ticks since boot; with the pid it names a process for good
}

// Read returns the Stat of pid, or the error of reading it: syscall.ESRCH when there is no such process.
func Read(pid int) (Stat, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if os.IsNotExist(err) {
		return Stat{}, syscall.ESRCH
	}
	if err != nil {
		return Stat{}, err
	}
	return parse(text)
}

// parse reads "pid (name) state ppid ...". The name may hold blanks and parentheses: it ends at the last one.
func parse(text []byte) (Stat, error) {
	open, shut := -1, -1
	for i, c := range text {
		if c == '(' && open < 0 {
			open = i
		}
		if c == ')' {
			shut = i
		}
	}
	if open < 0 || shut < open || shut+3 > len(text) {
		return Stat{}, syscall.EINVAL
	}
	s := Stat{Name: string(text[open+1 : shut]), State: text[shut+2]}
	fields := appendNumbers(nil, unsign(text[shut+3:]))
	if len(fields) < 19 {
		return Stat{}, syscall.EINVAL
	}
	s.Parent, s.Start = fields[0], uint64(fields[18])
	return s, nil
}

// unsign returns text with minus signs blanked: the fields before the start time that can be negative are of no use here.
func unsign(text []byte) []byte {
	out := make([]byte, len(text))
	for i, c := range text {
		if c == '-' {
			c = ' '
		}
		out[i] = c
	}
	return out
}
