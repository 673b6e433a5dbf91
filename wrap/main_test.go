package wrap

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rdzv/internal/procfs"
	"rdzv/internal/proctest"
	"rdzv/wrap/internal/parent"
)

// The test binary is also the agents and workers of the tests: with roleEnv set it runs the
// function of that name in roles.
const (
	roleEnv   = "WRAP_TEST_ROLE"
	markerEnv = "WRAP_TEST_MARKER"
	argEnv    = "WRAP_TEST_ARG"
)

var roles = map[string]func(){}

func role(name string, main func()) string {
	roles[name] = main
	return name
}

func TestMain(m *testing.M) {
	if name := os.Getenv(roleEnv); name != "" {
		main, ok := roles[name]
		if !ok {
			fmt.Fprintf(os.Stderr, "no role %q\n", name)
			os.Exit(99)
		}
		main()
		if testing.CoverMode() != "" {
			syscall.Exit(0) // os.Exit would print a warning about coverage
		}
		os.Exit(0)
	}
	proctest.CatchIgnored()
	goleak.VerifyTestMain(m)
}

// worker returns a Worker with a role.
func worker(t *testing.T, role string, env ...string) Worker {
	t.Helper()
	return Worker{
		Path: "/proc/self/exe",
		Args: []string{role},
		Env: append([]string{
			roleEnv + "=" + role, markerEnv + "=" + marker(t), "PATH=" + os.Getenv("PATH"),
		}, env...),
	}
}

// sh returns a Worker that runs a shell script.
func sh(t *testing.T, script string) Worker {
	t.Helper()
	return Worker{
		Path: "/bin/sh", Args: []string{"sh", "-c", script},
		Env: []string{markerEnv + "=" + marker(t), "PATH=" + os.Getenv("PATH")},
	}
}

// marker is the value of markerEnv in all processes of a test.
func marker(t *testing.T) string { return fmt.Sprintf("%s@%d", t.Name(), os.Getpid()) }

// startMarked starts a command. At the end of the test all processes with its marker are killed.
func startMarked(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		killMarked(t)
		cmd.Wait()
		eventually(t, "all have ended", func() bool { return len(marked(marker(t))) == 0 })
	})
}

// killMarked kills all processes with the marker of the test.
func killMarked(t *testing.T) {
	for _, p := range marked(marker(t)) {
		syscall.Kill(p.PID, syscall.SIGKILL)
	}
}

// nothingLeft fails the test if at its end a process with its marker, a child or a descriptor is
// left. It waits for the trees of agents that the test has killed; checkNoneLeft checks immediately
// after a Run in the test itself.
func nothingLeft(t *testing.T) {
	t.Helper()
	fds := openFiles(t)
	t.Cleanup(func() {
		eventually(t, "no process is left", func() bool {
			reapAdopted()
			children, _ := procfs.Children(procfs.System, os.Getpid())
			return len(children) == 0 && len(marked(marker(t))) == 0
		})
		// One more was once seen for a moment.
		eventually(t, fmt.Sprintf("at most %d descriptors are open", fds), func() bool {
			runtime.GC() // the memory of a lease, and its file, are closed when they are collected
			return openFiles(t) <= fds
		})
	})
}

// checkNoneLeft fails the test if a Run that has returned has left a process.
func checkNoneLeft(t *testing.T) {
	t.Helper()
	if left := marked(marker(t)); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if left, _ := procfs.Children(procfs.System, os.Getpid()); len(left) > 0 {
		t.Errorf("children left: %v", named(left))
	}
}

// reapAdopted reaps the zombies of agents that a test has killed: since its first Run this process
// adopts them.
func reapAdopted() {
	pids, _ := procfs.Children(procfs.System, os.Getpid())
	for _, pid := range pids {
		syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	if r, w, err := os.Pipe(); err == nil { // for the first one Go opens two more descriptors
		r.Close()
		w.Close()
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// marked returns the running processes whose environment contains mark, except runners, which have
// that of their agent.
func marked(mark string) []Process {
	var found []Process
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		text, err := os.ReadFile(f)
		want := []byte("\x00" + markerEnv + "=" + mark + "\x00")
		if err != nil || !bytes.Contains(append([]byte{0}, text...), want) {
			continue
		}
		pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
		if s, err := procfs.Read(procfs.System, pid); err == nil && s.State != 'Z' && !isRunner(pid) {
			found = append(found, Process{pid, s.Name})
		}
	}
	return found
}

// isRunner tells whether a process is a runner, also one that has just been executed.
func isRunner(pid int) bool {
	line := procfs.Arguments(procfs.System, pid)
	return len(line) > 0 && line[0] == parent.Name
}

// eventually waits until ok, at most 20 s. what describes that.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("timed out after 20 s waiting until %s", what)
		}
	}
}

// mustRun calls Run and fails the test if it returns an error.
func mustRun(t *testing.T, ctx context.Context, tree Tree) []Result {
	t.Helper()
	results, err := Run(ctx, tree)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	checkNoneLeft(t)
	if len(results) != len(tree.Workers) {
		t.Fatalf("Run returned %d results for %d workers", len(results), len(tree.Workers))
	}
	return results
}

// output returns the write end of a pipe, and a function that closes it and returns what was
// written.
func output(t *testing.T) (*os.File, func() string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	text := make(chan string, 1)
	go func() {
		defer r.Close()
		var b bytes.Buffer
		b.ReadFrom(r)
		text <- b.String()
	}()
	return w, func() string {
		w.Close()
		return <-text
	}
}

// pause never returns.
func pause() {
	for {
		_ = syscall.Pause()
	}
}

// ctxNever is the context of agents that end with their workers.
var ctxNever = context.Background()

// readState is the state of a process as ps shows it.
func readState(pid int) (byte, error) {
	s, err := procfs.Read(procfs.System, pid)
	return s.State, err
}
