// Package command runs commands that tell something in one line.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"rdzv/rdzv"
	"rdzv/wrap"
)

// outputDelay is how long the output of a command that has ended is waited for.
const outputDelay = time.Second

// ErrTimedOut is why a command failed that was still running at its deadline.
var ErrTimedOut = errors.New("timed out")

// LastLine runs a command in a directory, "" is that of this process, and returns the last line of
// its output. The error, if it fails or ctx ends first, quotes that line. Nothing of its process
// tree is left.
func LastLine(ctx context.Context, dir string, env []string, argv ...string) (string, error) {
	path, err := wrap.Find(argv[0], env, dir)
	if err != nil {
		return "", err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return "", err
	}
	text := make(chan string)
	go func() {
		var out tail
		_, _ = io.Copy(&out, read)
		text <- out.lastLine()
	}()
	results, err := wrap.Run(ctx, wrap.Tree{
		Workers: []wrap.Worker{{
			Path: path, Args: argv, Env: env, Dir: dir, Stdout: write, Stderr: write,
		}},
	})
	write.Close()
	_ = read.SetReadDeadline(time.Now().Add(outputDelay)) // a process that cannot be killed has it
	line := <-text
	read.Close()
	if err == nil {
		err = resultError(ctx, results[0])
	}
	if err != nil && line != "" {
		err = fmt.Errorf("%w: %q", err, line)
	}
	return line, err
}

// resultError is why a command has not succeeded.
func resultError(ctx context.Context, r wrap.Result) error {
	switch {
	case r.Err != nil:
		return r.Err
	case r.Stopped && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return ErrTimedOut
	case r.Stopped:
		return context.Cause(ctx)
	case r.Signal != 0:
		return fmt.Errorf("killed by %s", rdzv.Signal(r.Signal))
	case r.Code != 0:
		return fmt.Errorf("exit status %d", r.Code)
	}
	return nil
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
