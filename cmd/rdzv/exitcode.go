package main

// The exit codes of all commands but exec, whose codes are those of package agent.
const (
	codeOK      = 0
	codeUnknown = 1 // get-rank and others: there is no answer
	codeUsage   = 2 // bad usage
)
