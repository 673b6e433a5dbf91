// Package postmortem determines why a worker failed, from what it left behind: the last lines of
// its stderr, torch's error file, the kernel's count of out-of-memory kills.
//
// What the job makes of a failure does not belong here, nor do sentences for people.
package postmortem

import "strings"

// Findings is what is known of a worker's failure.
type Findings struct {
	// Message is one line that names the failure, such as "ValueError: no such file"; "" if
	// there is none.
	Message string
	// Lines are the traceback, or the last lines of stderr.
	Lines []string
}

// Examine looks for the reason of a worker's failure in the end of its stderr, and in what it
// wrote for torch's errors module. file may be nil.
func Examine(stderr []byte, file *ErrorFile) (f Findings) {
	f.Lines, f.Message = lastLines(stderr)
	if file == nil {
		return f
	}
	message, traceback := file.message()
	if traceback != "" {
		f.Lines = strings.Split(traceback, "\n")
	}
	if message != "" {
		f.Message = message
	}
	return f
}
