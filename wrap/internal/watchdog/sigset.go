package watchdog

import (
	"os"
	"strconv"
	"syscall"
)

// Set is a set of signals as /proc/PID/status shows it: bit n-1 stands for signal n.
type Set uint64

// Has reports whether s is in the set.
func (set Set) Has(s syscall.Signal) bool { return set&(1<<(s-1)) != 0 }

// IgnoredSignals is the set of signals that this process ignores.
func IgnoredSignals() Set { return signalSet(os.Getpid(), "SigIgn:") }

// diesOf reports whether pid does nothing about s: it neither catches nor ignores it, nor holds it back to take it later.
func diesOf(pid int, s syscall.Signal) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	for _, name := range []string{"SigCgt:", "SigIgn:", "SigBlk:"} {
		if err != nil || signalSetIn(string(text), name).Has(s) {
			return false
		}
	}
	return true
}

// signalSet reads one of the signal sets in /proc/PID/status; it is empty when that cannot be read.
func signalSet(pid int, name string) Set {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	return signalSetIn(string(text), name)
}

func signalSetIn(text, name string) Set {
	for line := range lines(text) {
		if len(line) > len(name) && line[:len(name)] == name {
			set, _ := strconv.ParseUint(line[len(name)+1:], 16, 64)
			return Set(set)
		}
	}
	return 0
}

// lines yields the lines of text without their ends.
func lines(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for from, i := 0, 0; i < len(text); i++ {
			if text[i] == '\n' {
				if !yield(text[from:i]) {
					return
				}
				from = i + 1
			}
		}
	}
}
