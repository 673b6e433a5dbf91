package procfs

import (
	"bytes"
	"io/fs"
	"path"
	"strconv"
	"syscall"
)

// SignalSet is a set of signals: bit n-1 stands for signal n.
type SignalSet uint64

// Has reports whether s, which is at least 1, is in the set.
func (set SignalSet) Has(s syscall.Signal) bool { return set&(1<<(s-1)) != 0 }

// Signals are the signals that a process blocks, ignores and catches.
type Signals struct {
	Blocked, Ignored, Caught SignalSet
	// Init says that it is process 1 of a pid namespace below that of proc: of the signals that it
	// does not catch it receives SIGKILL and SIGSTOP alone (Linux 4.1; false before).
	Init bool
}

// ReadSignals reads the signal sets of pid from /proc/PID/status (proc(5)).
func ReadSignals(proc fs.FS, pid int) (Signals, error) {
	text, err := fs.ReadFile(proc, path.Join(strconv.Itoa(pid), "status"))
	if err != nil {
		return Signals{}, err
	}
	return parseSignals(text), nil
}

// parseSignals reads the signal sets in the text of /proc/PID/status. A set whose line is missing
// or malformed is empty.
func parseSignals(text []byte) (s Signals) {
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) == "NSpid" { // its pid in each namespace, from that of proc downwards
			pids := bytes.Fields(value)
			s.Init = len(pids) > 1 && string(pids[len(pids)-1]) == "1"
			continue
		}
		bits, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 16, 64)
		if err != nil {
			continue
		}
		switch set := SignalSet(bits); string(name) {
		case "SigBlk":
			s.Blocked = set
		case "SigIgn":
			s.Ignored = set
		case "SigCgt":
			s.Caught = set
		}
	}
	return s
}
