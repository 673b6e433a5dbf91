package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rdzv/internal/proctest"
	"rdzv/rdzv/agent"
)

// With roleEnv set, the test binary is a worker, or a program that embeds an agent.
const roleEnv = "AGENT_TEST_ROLE"

// deadline bounds each test.
const deadline = 20 * time.Second

var roles = map[string]func() int{}

// role adds a role, which main returns the exit code of, and returns its name.
func role(name string, main func() int) string {
	roles[name] = main
	return name
}

func TestMain(m *testing.M) {
	if name := os.Getenv(roleEnv); name != "" {
		os.Exit(roles[name]())
	}
	proctest.CatchIgnored()
	goleak.VerifyTestMain(m)
}

// environ is the environment of a process with a role.
func environ(t *testing.T, role string) []string {
	t.Helper()
	dir := t.TempDir()
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, roleEnv + "=" + role,
		"GORACE=atexit_sleep_ms=0",
	}
}

// config is the configuration of a job of one agent whose workers have a role.
func config(t *testing.T, role string, workers int) agent.Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return agent.Config{
		Program: []string{self, "-" + role}, Environ: environ(t, role),
		ProcsPerNode: strconv.Itoa(workers),
	}
}

// noneLeft returns a function that fails the test if this process has a child that it did not have
// before, or if the runtime directory contains a file. An agent makes its process a subreaper, so
// that processes of a worker that outlive it become its children.
func noneLeft(t *testing.T, environ []string) func() {
	t.Helper()
	before := children(t)
	return func() {
		t.Helper()
		existed := func(pid string) bool { return slices.Contains(before, pid) }
		left := slices.DeleteFunc(children(t), existed)
		if len(left) > 0 {
			t.Errorf("Run left the child processes %v, want none", left)
		}
		for _, entry := range environ {
			if dir, ok := strings.CutPrefix(entry, "TMPDIR="); ok {
				files, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("rdzv-%d", os.Geteuid()),
					"*"))
				if err != nil || len(files) > 0 {
					t.Errorf("Run left the files %q, %v; want none", files, err)
				}
			}
		}
	}
}

// children lists the pids of this process's children, including zombies.
func children(t *testing.T) (pids []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(files) == 0 {
		t.Fatalf("cannot list the children of this process: %v", err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil { // a thread may have ended
			pids = append(pids, strings.Fields(string(text))...)
		}
	}
	return pids
}
