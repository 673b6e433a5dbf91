package tasks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rdzv/internal/procfs"
	"rdzv/internal/proctest"
	"rdzv/wrap"
)

// The test binary is also the tasks of the tests: with roleEnv set it runs the function of that
// name in roles.
const (
	roleEnv   = "TASKS_TEST_ROLE"
	addrEnv   = "TASKS_TEST_ADDRESS"
	markerEnv = "TASKS_TEST_MARKER"
)

var roles = map[string]func(){}

func role(name string, main func()) string {
	roles[name] = main
	return name
}

func TestMain(m *testing.M) {
	if name := os.Getenv(roleEnv); name != "" {
		roles[name]()
		if testing.CoverMode() != "" {
			syscall.Exit(0) // os.Exit would print a warning about coverage
		}
		os.Exit(0)
	}
	proctest.CatchIgnored()
	goleak.VerifyTestMain(m)
}

// aTask is a task that has an agent.
var aTask = role("task", func() {
	_, conn, err := Meet(os.Getenv(addrEnv), false)
	if err != nil || conn == nil {
		fmt.Fprintln(os.Stderr, "no agent:", err)
		os.Exit(99)
	}
	dir, _ := os.Getwd()
	h := Hello{Args: os.Args, Env: os.Environ(), Dir: dir, Devices: []string{"/dev/null"}}
	extra := os.NewFile(3, "extra")
	streams := [3]*os.File{os.Stdin, os.Stdout, os.Stderr}
	code, _, err := conn.Serve(h, streams, extra)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	syscall.Exit(code)
})

// marker is the value of markerEnv in all processes of a test.
func marker(t *testing.T) string { return fmt.Sprintf("%s@%d", t.Name(), os.Getpid()) }

// address is one for this test alone.
func address(t *testing.T) string { return prefix + "test/" + marker(t) }

// process is a task of a test.
type process struct {
	*exec.Cmd
	t      *testing.T
	ended  chan struct{} // closed when it has
	extra  *os.File      // our end of a pipe whose other end it passes
	stdout *buffer
}

// start starts a task. Its stdout and stderr are one pipe.
func start(t *testing.T, role, addr string, change ...func(*exec.Cmd)) *process {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, reading := newBuffer(t)
	p := &process{exec.Command("/proc/self/exe"), t, make(chan struct{}), w, out}
	p.Args[0] = role
	p.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", // with -race a process ends 1 s later
		roleEnv+"="+role, addrEnv+"="+addr, markerEnv+"="+marker(t))
	p.Stdout, p.Stderr, p.ExtraFiles = reading, reading, []*os.File{r}
	for _, f := range change {
		f(p.Cmd)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	reading.Close()
	go func() { defer close(p.ended); p.Wait() }()
	t.Cleanup(func() {
		killMarked(t)
		<-p.ended
		w.Close()
	})
	return p
}

// code waits for the end of the task and returns its exit code.
func (p *process) code() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.t.Fatal("the task does not end")
	}
	return p.ProcessState.ExitCode()
}

// limit is how long a test waits.
const limit = 20 * time.Second

// agentOf makes the test the agent of n tasks.
func agentOf(t *testing.T, n int, change ...func(*exec.Cmd)) ([]*process, []*Task) {
	t.Helper()
	nothingLeft(t)
	addr := address(t)
	l, _, err := Meet(addr, true)
	if err != nil {
		t.Fatal(err)
	}
	var list []*process
	for range n {
		list = append(list, start(t, aTask, addr, change...))
	}
	l.wait = limit // for a busy machine
	tasks := l.Tasks(t.Context(), n)
	if len(tasks) != n {
		t.Fatalf("%d tasks came, want %d", len(tasks), n)
	}
	t.Cleanup(func() {
		for _, task := range tasks {
			task.Close()
		}
	})
	slices.SortFunc(tasks, func(a, b *Task) int { return indexOf(list, a) - indexOf(list, b) })
	return list, tasks
}

func indexOf(list []*process, t *Task) int {
	return slices.IndexFunc(list, func(p *process) bool { return p.Process.Pid == t.Hello().PID })
}

// oneTask is a task, and what its agent sees of it.
func oneTask(t *testing.T, change ...func(*exec.Cmd)) (*process, *Task) {
	t.Helper()
	list, tasks := agentOf(t, 1, change...)
	return list[0], tasks[0]
}

// sh is a worker that runs a shell script with the streams of its task.
func sh(t *testing.T, script string) wrap.Worker {
	return wrap.Worker{
		Path: "/bin/sh", Args: []string{"sh", "-c", script}, Stdin: os.Stdin, Stdout: os.Stdout,
		Stderr: os.Stderr,
		Env:    []string{markerEnv + "=" + marker(t), "PATH=" + os.Getenv("PATH")},
	}
}

// runIn is Run in a task. The streams of this process stand for those of the task.
func runIn(task *Task, ctx context.Context, tree wrap.Tree) ([]wrap.Result, error) {
	workers := slices.Clone(tree.Workers)
	for i := range workers {
		w := &workers[i]
		for n, f := range []**os.File{&w.Stdin, &w.Stdout, &w.Stderr} {
			if *f == []*os.File{os.Stdin, os.Stdout, os.Stderr}[n] {
				*f = task.Files()[n]
			}
		}
	}
	tree.Workers, tree.Source = workers, task.Signals()
	return task.Run(ctx, tree)
}

// outcome is what Run returns.
type outcome struct {
	results []wrap.Result
	err     error
}

// begin begins a Run in a task. end ends it.
func begin(t *testing.T, task *Task, tree wrap.Tree) (result <-chan outcome, end context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan outcome, 1)
	go func() {
		results, err := runIn(task, ctx, tree)
		done <- outcome{results, err}
	}()
	t.Cleanup(func() { cancel(nil) })
	return done, cancel
}

// await is what a channel delivers.
func await[T any](t *testing.T, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(limit):
		t.Fatalf("timed out waiting for %s", what)
	}
	return v
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for late := time.Now().Add(limit); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// nothingLeft fails the test if at its end a process with its marker, or a descriptor, is left.
func nothingLeft(t *testing.T) {
	t.Helper()
	before := openFiles(t)
	t.Cleanup(func() {
		eventually(t, "no process is left", func() bool { return len(marked(t)) == 0 })
		eventually(t, fmt.Sprintf("at most %d descriptors are open", before), func() bool {
			runtime.GC() // the memory of a lease, and its file, are closed when they are collected
			return openFiles(t) <= before
		})
	})
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

func killMarked(t *testing.T) {
	for _, pid := range marked(t) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// marked are the processes that run with the marker of the test, except runners.
func marked(t *testing.T) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		text, err := os.ReadFile(f)
		want := []byte("\x00" + markerEnv + "=" + marker(t) + "\x00")
		if err != nil || !bytes.Contains(append([]byte{0}, text...), want) {
			continue
		}
		pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
		if s, err := procfs.Read(procfs.System, pid); err == nil && s.State != 'Z' && !isRunner(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isRunner tells whether a process is a runner, also one that has just been executed.
func isRunner(pid int) bool {
	line := procfs.Arguments(procfs.System, pid)
	return len(line) > 0 && line[0] == "tree-runner"
}

// state is that of a process as ps shows it.
func state(pid int) byte {
	s, err := procfs.Read(procfs.System, pid)
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	return s.State
}
