package meet

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// A process is what /proc tells of one.
type process struct {
	pid, ppid int
	start     uint64 // in clock ticks since boot: with the pid, it names one process for good
}

var errStat = errors.New("not a stat of a process")

// parseStat reads /proc/PID/stat (proc(5)). The name is in parentheses and may hold any character, parentheses too.
func parseStat(text string) (process, error) {
	before, rest, ok := strings.Cut(text, " (")
	end := strings.LastIndex(rest, ") ")
	if !ok || end < 0 {
		return process{}, errStat
	}
	fields := strings.Fields(rest[end+2:])
	if len(fields) < 20 {
		return process{}, errStat
	}
	pid, err1 := strconv.Atoi(before)
	ppid, err2 := strconv.Atoi(fields[1])
	start, err3 := strconv.ParseUint(fields[19], 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return process{}, errStat
	}
	return process{pid: pid, ppid: ppid, start: start}, nil
}

func readProcess(proc fs.FS, pid int) (process, error) {
	text, err := fs.ReadFile(proc, path.Join(strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, err
	}
	return parseStat(string(text))
}

// maxAncestors is how far up to look; shells and wrappers may stand between the daemon and us.
const maxAncestors = 32

// ancestors lists the parents of pid, the nearest first.
func ancestors(proc fs.FS, pid int) []process {
	var list []process
	p, err := readProcess(proc, pid)
	for err == nil && p.ppid > 0 && len(list) < maxAncestors {
		p, err = readProcess(proc, p.ppid)
		if err == nil {
			list = append(list, p)
		}
	}
	return list
}

// arguments gives the command line of a process.
func arguments(proc fs.FS, pid int) []string {
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

// argument finds the value that follows the word called name on a command line.
func argument(args []string, name string) (string, bool) {
	for i := range len(args) - 1 {
		if args[i] == name {
			return strings.Trim(args[i+1], `"`), true
		}
	}
	return "", false
}
