package starter

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Here starts an agent on this machine, as a child in a session of its own: signals of the terminal
// reach it through the starter alone. executable is that of this process.
func Here(executable string, args []string, environ []string) (*Connection, error) {
	cmd := exec.Command(executable, args...)
	cmd.Args[0], cmd.Env, cmd.Stderr = "rdzv", environ, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start an agent here: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start an agent here: %w", err)
	}
	cmd.Stdout = write
	err = cmd.Start()
	write.Close()
	if err != nil {
		return nil, fmt.Errorf("cannot start an agent here: %w", err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	wait := func() error { <-ended; return nil }
	return &Connection{Stdin: stdin, Stdout: read, Wait: wait, Close: func(ctx context.Context) {
		stdin.Close() // which ends its part
		select {
		case <-ended:
		case <-ctx.Done():
			_ = cmd.Process.Kill()
			<-ended
		}
		read.Close()
	}}, nil
}
