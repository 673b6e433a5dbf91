package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is rdzv too, when it is called so: the init functions of
// packages early, watchdog and keeper look at what it was called with, as in rdzv
// itself.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"rdzv": main})
}

// noRaceNap spares each rdzv built with -race the second that it would sleep before
// it exits.
const noRaceNap = "atexit_sleep_ms=0"

// A call is what one rdzv printed, and how it ended.
type call struct {
	stdout, stderr string
	code           int
	err            error // it could not be run
}

// called runs rdzv, as a story does, for tests that are no stories.
func called(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	c := calls(t, env, [][]string{args})[0]
	if c.err != nil {
		t.Fatal(c.err)
	}
	return c.stdout, c.stderr, c.code
}

// atOnce is how many calls run at the same time: with -race each watchdog sleeps a
// second before it exits.
const atOnce = 16

// calls runs rdzv once for each of lines.
func calls(t *testing.T, env []string, lines [][]string) []call {
	t.Helper()
	dir := t.TempDir()
	env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "GORACE=" + noRaceNap}, env...)
	done := make([]call, len(lines))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(atOnce, len(lines)) {
		wg.Go(func() {
			for i := range next {
				done[i] = callOne(t.Context(), env, lines[i])
			}
		})
	}
	for i := range lines {
		next <- i
	}
	close(next)
	wg.Wait()
	return done
}

func callOne(ctx context.Context, env, args []string) call {
	cmd := exec.CommandContext(ctx, "rdzv", args...)
	cmd.Env = env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return call{out.String(), errs.String(), cmd.ProcessState.ExitCode(), err}
}
