// Package health runs the user's command that decides whether a node can take part in an attempt.
package health

import (
	"context"
	"fmt"
	"time"

	"rdzv/rdzv/agent/internal/command"
)

// Name stands for the command in messages and in the report of a node check.
const Name = "health command"

// Run runs a command of /bin/sh within a limit, and returns the last line of its output.
func Run(
	ctx context.Context, limit time.Duration, text string, environ []string,
) (line string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	line, err = command.LastLine(ctx, "", environ, "/bin/sh", "-c", text)
	if err != nil {
		err = fmt.Errorf("%s failed: %w", Name, err)
	}
	return line, err
}

// Check is a command that runs beside something else.
type Check struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // valid when done is closed
}

// Start begins to run a command.
func Start(limit time.Duration, text string, environ []string) *Check {
	ctx, cancel := context.WithCancel(context.Background())
	c := &Check{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		_, c.err = Run(ctx, limit, text, environ)
	}()
	return c
}

// Stop ends the command and waits for its end. nil has ended.
func (c *Check) Stop() {
	if c != nil {
		c.cancel()
		<-c.done
	}
}

// Await returns the error of the command; if ctx ends before it, the command is ended, and its
// error is nil. That of nil is nil.
func (c *Check) Await(ctx context.Context) error {
	if c == nil {
		return nil
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		c.Stop()
		return nil
	}
}
