package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"rdzv/internal/proctest"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// The exit code of a worker becomes that of the job: with one worker, and as the second of two.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	// package integration tests all 256
	codes := []int{
		0, 1, 2, 3, 77, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 137, 143, 254, 255,
	}
	var commands [][]string
	for _, code := range codes {
		commands = append(commands, []string{"exec", "--", "sh", "-c",
			fmt.Sprintf("exit %d", code)})
	}
	for i, r := range runEach(t, nil, commands) {
		code := codes[i]
		if r.err != nil || r.code != code {
			t.Errorf("worker exits with %d: the job ended with %d, %v", code, r.code, r.err)
		}
		message := fmt.Sprintf("rank 0 failed first: exit %d ", code)
		if want := code != 0; strings.Contains(r.stderr, message) != want {
			t.Errorf("worker exits with %d: stderr contains %q: %t, want %t\n%s",
				code, message, !want, want, r.stderr)
		}
	}
	script := `test $RANK = 1 && exit 9; exec sleep 100`
	if r := runRdzv(t, nil, "exec", "--nproc-per-node", "2", "--", "sh", "-c",
		script); r.code != 9 {
		t.Errorf("rank 1 exits with 9: the job ended with %d: %s", r.code, r.stderr)
	}
}

// If signal n ends a worker, the job ends with 128+n.
func TestSignalCodes(t *testing.T) {
	proctest.CatchIgnored()
	t.Parallel()
	signals := []syscall.Signal{1, 2, 3, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15, 24, 31, 34, 64}
	var commands [][]string
	for _, s := range signals {
		script := fmt.Sprintf("ulimit -c 0; kill -%d $$; sleep 100", s)
		commands = append(commands, []string{"exec", "--", "sh", "-c", script})
	}
	for i, r := range runEach(t, nil, commands) {
		s := signals[i]
		if want := agent.CodeSignal + int(s); r.err != nil || r.code != want {
			t.Errorf("%v ends the worker: the job ended with %d, %v; want %d", s, r.code, r.err,
				want)
		}
		want := "rank 0 failed first: killed by " + rdzv.Signal(s).String()
		if !strings.Contains(r.stderr, want) {
			t.Errorf("%v ends the worker: stderr is %q, want %q in it", s, r.stderr, want)
		}
	}
}
