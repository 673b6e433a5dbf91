package main

import (
	"os"
	"strings"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/flagname"
	"rdzv/cmd/rdzv/internal/termlog"
	"rdzv/rdzv/agent"
)

// terminated writes why this command ends to the container's termination log, if it has one.
func (a *app) terminated(code int, message, hint string) {
	if code == codeOK || message == "" {
		return
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // without /proc there is no container
	path, given := termlog.Path(a.env, mounts)
	if path == "" {
		return
	}
	if hint != "" {
		message = strings.TrimRight(message, "\n") + "\nhint: " + hint
	}
	if err := termlog.Write(path, console.Visible(message)); err != nil && given {
		a.console.Warn("%v", err)
	} else if err != nil {
		a.console.Verbose("%v", err)
	}
}

// terminatedBy does so for the error of an agent that was never a member of a job.
func (a *app) terminatedBy(err error, code int, message string) {
	a.terminated(code, flagname.In(message), flagname.In(agent.Hint(err)))
}

// terminatedWith does so for the end of a job.
func (a *app) terminatedWith(end agent.Result, code int) {
	message := a.console.EndLine(end.Ended)
	if end.Withdrawn {
		message = a.console.Left(end.Ended)
	}
	a.terminated(code, message, "")
}
