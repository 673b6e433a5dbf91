// Package termination says in the termination log of a container why a command ends.
package termination

import (
	"os"
	"strings"

	"rdzv/cmd/rdzv/internal/announce"
	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/termlog"
	"rdzv/cmd/rdzv/internal/visible"
	"rdzv/envmap"
	"rdzv/rdzv/agent"
)

// End writes why a command ends to the termination log of its container, if it has one.
type End struct {
	Env     envmap.Env
	Console *console.Console
	Words   *announce.Announcer
}

// By writes the error of an agent that was never a member of a job; nothing without a message.
func (e End) By(err error, code int, message string) {
	e.write(code, message, agent.Hint(err))
}

// With writes the end of a job.
func (e End) With(end agent.Result, code int) {
	message := e.Words.EndLine(end.Ended)
	if end.Withdrawn {
		message = announce.Left(end.Ended)
	}
	e.write(code, message, "")
}

func (e End) write(code int, message, hint string) {
	if code == 0 || message == "" {
		return
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // without /proc there is no container
	path, given := termlog.Path(e.Env, mounts)
	if path == "" {
		return
	}
	if hint != "" {
		message = strings.TrimRight(message, "\n") + "\nhint: " + hint
	}
	if err := termlog.Write(path, visible.Text(message)); err != nil && given {
		e.Console.Warn("%v", err)
	} else if err != nil {
		e.Console.Verbose("%v", err)
	}
}
