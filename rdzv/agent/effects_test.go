package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"rdzv/rdzv/agent"
)

// succeed is a worker that exits with 0 at once.
var succeed = role("succeed", func() int { return 0 })

// runsThenSignalled is a program that runs an agent and then sends a signal to itself.
var runsThenSignalled = role("runs-then-signalled", func() int {
	self, err := os.Executable()
	if err != nil {
		return 2
	}
	environ := append(os.Environ(), roleEnv+"="+succeed)
	c := agent.Config{Program: []string{self}, Environ: environ}
	if _, err := agent.Run(context.Background(), c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	var s syscall.Signal
	fmt.Sscan(os.Getenv("AGENT_TEST_SIGNAL"), (*int)(&s))
	syscall.Kill(os.Getpid(), s)
	return untilStopped()
})

// After Run has returned, signals have their default effect on the process again.
func TestSignalsAfterRun(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			cmd := exec.CommandContext(ctx, "/proc/self/exe")
			cmd.Env = append(environ(t, runsThenSignalled),
				fmt.Sprint("AGENT_TEST_SIGNAL=", int(s)))
			cmd.Stderr = os.Stderr
			err := cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != s {
				t.Errorf("the program ended with %v, want %v", err, s)
			}
		})
	}
}
