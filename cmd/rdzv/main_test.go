package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary behaves as rdzv if it is started under that name. The init functions of packages
// early, holder and keeper look at its arguments as they do in rdzv itself.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"fakessh": fakeSSH, "rdzv": func() {
		if os.Getenv(timesVariable) != "" {
			main()
		}
		runProcess(nil)
	}})
}

// timesVariable, if it is not empty, lets rdzv write the times of lines about a running job, which
// other tests do not expect.
const timesVariable = "TEST_TIMES"

// noRaceExitDelay, as GORACE, omits the second for which a program built with -race sleeps before
// it exits.
const noRaceExitDelay = "atexit_sleep_ms=0"

// completedRun is what one rdzv printed, and its exit code.
type completedRun struct {
	stdout, stderr string
	code           int
	err            error // why it could not be started
}

// runRdzv runs rdzv and waits for its end.
func runRdzv(t *testing.T, env []string, args ...string) completedRun {
	t.Helper()
	r := runEach(t, env, [][]string{args})[0]
	if r.err != nil {
		t.Fatalf("cannot start rdzv %q: %v", args, r.err)
	}
	return r
}

// maxParallel limits how many rdzv run at the same time. With -race they mostly sleep: each
// holder does so for a second before it exits.
const maxParallel = 16

// runEach runs rdzv once for each list of arguments.
func runEach(t *testing.T, env []string, argLists [][]string) []completedRun {
	t.Helper()
	env = append(baseEnv(t.TempDir()), env...)
	results := make([]completedRun, len(argLists))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(maxParallel, len(argLists)) {
		wg.Go(func() {
			for i := range next {
				results[i] = runOnce(t.Context(), env, argLists[i])
			}
		})
	}
	for i := range argLists {
		next <- i
	}
	close(next)
	wg.Wait()
	return results
}

// baseEnv is an environment without a launcher. Home and temporary directory are dir.
func baseEnv(dir string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "GORACE=" + noRaceExitDelay,
	}
}

func runOnce(ctx context.Context, env, args []string) completedRun {
	cmd := exec.CommandContext(ctx, "rdzv", args...)
	cmd.Env = env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return completedRun{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), err}
}

// launcherEnv is the environment that a launcher gave to a rank, as recorded in envmap/testdata,
// without the variables that every process has.
func launcherEnv(record string) (env []string, err error) {
	text, err := os.ReadFile(filepath.Join("..", "..", "envmap", "testdata", record+".env"))
	if err != nil {
		return nil, err
	}
	everywhere := []string{"PATH", "HOME", "TMPDIR", "PWD", "XDG_RUNTIME_DIR", "LD_LIBRARY_PATH"}
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, "="); ok && !slices.Contains(everywhere, name) {
			env = append(env, strings.TrimRight(line, "\n"))
		}
	}
	return env, nil
}

func fatalIf(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
