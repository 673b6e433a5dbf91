package main

import (
	"errors"

	"rdzv/rdzv"
)

// The exit codes of rdzv, all of them. Those of exec are the job's: every agent
// of a job exits with the same one, so that a launcher that passes on the first,
// the largest or the bitwise or of its tasks' codes passes on this one.
const (
	codeOK         = 0
	codeUnknown    = 1   // get-rank and others: there is no answer
	codeUsage      = 2   // bad usage of any command but exec
	codeUnready    = 121 // exec: a check failed on some node, nothing was started
	codeStraggling = 122 // exec: stragglers were stopped after --exit-timeout
	codeLost       = 123 // exec: an agent, a node or the store was lost without a word
	codeIncomplete = 124 // exec: not all agents came within --join-timeout
	codeExec       = 125 // exec: rdzv itself failed: bad usage, no key
	codeSignal     = 128 // exec: plus the number of the signal that ended the worker, or the job
)

// jobCode is the exit code that follows from how the job ended.
func jobCode(s rdzv.Summary) int {
	if s.Verdict == nil {
		return codeLost // no verdict reached this agent: the store went first
	}
	switch v := s.Verdict; v.Kind {
	case rdzv.Done:
		return codeOK
	case rdzv.Failed:
		return workerCode(v.Code, v.Signal)
	case rdzv.Ended:
		if !s.Settled {
			return codeSignal + v.Signal
		}
		return s.Code
	case rdzv.Unready:
		if v.Code != 0 {
			return v.Code
		}
		return codeUnready
	case rdzv.Incomplete:
		return codeIncomplete
	case rdzv.Straggling:
		return codeStraggling
	default:
		return codeLost
	}
}

// workerCode is how a shell shows the end of a process.
func workerCode(code, signal int) int {
	if signal != 0 {
		return codeSignal + signal
	}
	return code
}

// coded is an error that has an exit code of its own.
type coded interface{ ExitCode() int }

// errorCode is the exit code that an error leads to before there is a job.
func errorCode(err error) int {
	var c coded
	if errors.As(err, &c) {
		return c.ExitCode()
	}
	return codeExec
}
