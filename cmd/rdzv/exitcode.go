package main

import (
	"errors"

	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// The exit codes of rdzv, all of them. Those of exec are the job's: every agent
// of a job exits with the same one, so that a launcher that passes on the first,
// the largest or the bitwise or of its tasks' codes passes on this one.
const (
	codeOK            = 0
	codeUnknown       = 1   // get-rank and others: there is no answer
	codeUsage         = 2   // bad usage of any command but exec
	codeUnready       = 121 // exec: a check failed on some node, nothing was started
	codeStraggling    = 122 // exec: stragglers were stopped after --exit-timeout
	codeLost          = 123 // exec: an agent, a node or the store was lost without a word
	codeIncomplete    = 124 // exec: not all agents came within --join-timeout
	codeExec          = 125 // exec: rdzv itself failed: bad usage, no key
	codeNotExecutable = 126 // exec: the program cannot be executed on some node
	codeMissing       = 127 // exec: there is no such program on some node
	codeSignal        = 128 // exec: plus the number of the signal that ended the worker, or the job
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
		return unreadyCode(v.Problems)
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

// unreadyCode is the highest of the problems' codes, so that the order in which
// members join does not matter.
func unreadyCode(problems []rdzv.NodeProblem) int {
	code := codeUnready
	for _, p := range problems {
		switch p.Kind {
		case rdzv.ProgramMissing:
			code = max(code, codeMissing)
		case rdzv.ProgramNotExecutable:
			code = max(code, codeNotExecutable)
		}
	}
	return code
}

// errorCode is the exit code that an error leads to before there is a job.
func errorCode(err error) int {
	var problem *agent.ProblemError
	var launcher *agent.LauncherDiedError
	switch {
	case errors.As(err, &problem):
		return codeUnready
	case errors.As(err, &launcher):
		return codeLost
	}
	return codeExec
}
