package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// killDelay is how long the output of a killed command is waited for.
const killDelay = time.Second

// LastLine runs a command and returns the last line of its output. The error, if it fails or ctx
// ends first, has that line too. Nothing of its process group is left.
func LastLine(ctx context.Context, env []string, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out tail
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = killDelay
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it has left
	}
	line := out.lastLine()
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // a process that it left had its output
		return line, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = errors.New("timed out")
	}
	if line != "" {
		err = fmt.Errorf("%w: %s", err, line)
	}
	return line, err
}

// tail keeps the end of what is written to it.
type tail struct{ end []byte }

const maxTail = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.end = append(t.end, b...)
	t.end = t.end[max(0, len(t.end)-maxTail):]
	return len(b), nil
}

func (t *tail) lastLine() string {
	text := strings.TrimSpace(string(bytes.ToValidUTF8(t.end, nil)))
	return strings.TrimSpace(text[strings.LastIndex(text, "\n")+1:])
}
