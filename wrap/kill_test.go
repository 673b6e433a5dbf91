package wrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
	"rdzv/wrap/internal/frames"
	"rdzv/wrap/internal/parent"
)

// resistantTree is a worker whose descendants are difficult to kill: they ignore signals, fork
// twice, create sessions and keep the streams open. It prints "ready" when all run.
const resistantTree = `
trap "" TERM INT HUP QUIT USR1 USR2 ABRT
for i in 1 2 3; do
	(setsid sh -c 'sleep 1000 & (setsid sleep 1001 &); sleep 1002' &) &
	sh -c '(sleep 1003 & sleep 1004 &) ; sleep 1005' &
done
until [ "$(grep -al "$WRAP_TEST_MARKER" /proc/[0-9]*/environ 2>/dev/null | wc -l)" -ge 20 ]; do
	sleep 0.01
done
echo ready
sleep 1006`

// agent runs a resistantTree and n-1 ignoringSignals workers until it is killed.
var agent = role("agent", func() {
	n, _ := strconv.Atoi(os.Getenv(argEnv))
	tree := Tree{Source: Signals(syscall.SIGTERM), FrozenLimit: time.Second}
	for i := range n {
		w := Worker{
			Path: "/bin/sh", Args: []string{"sh", "-c", resistantTree}, Env: os.Environ(),
			Stdout: os.Stdout, Stderr: os.Stderr,
		}
		if i > 0 {
			w = child(ignoringSignals)
		}
		tree.Workers = append(tree.Workers, w)
	}
	_, err := Run(context.Background(), tree)
	fmt.Println("returned", err)
})

// keepsEnv makes the workers of a role keep its terminal.
const keepsEnv = "WRAP_TEST_KEEPS_TERMINAL"

// child is a worker with a role, of an agent that is itself a role.
func child(role string) Worker {
	env := []string{roleEnv + "=" + role, markerEnv + "=" + os.Getenv(markerEnv)}
	return Worker{
		Path: "/proc/self/exe", Args: []string{role}, Env: env,
		Stdout: os.Stdout, Stderr: os.Stderr, Capture: os.Getenv(keepsEnv) == "",
	}
}

// startAgent starts an agent with n workers in its own process group, as launchers do, and waits
// until all processes run. change may change the command before.
func startAgent(t *testing.T, n int, change func(*exec.Cmd)) (*exec.Cmd, lineReader) {
	t.Helper()
	out, l := lines(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{
		roleEnv + "=" + agent, markerEnv + "=" + marker(t), argEnv + "=" + strconv.Itoa(n),
		"PATH=" + os.Getenv("PATH"),
	}
	cmd.Stdout = out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if change != nil {
		change(cmd)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() { // what is left would keep the output open
			killMarked(t)
		}
	})
	for range n {
		l.want("ready")
	}
	return cmd, l
}

// runnerOf returns the pid of the runner of an agent.
func runnerOf(t *testing.T, agent int) (pid int) {
	t.Helper()
	children, _ := procfs.Children(procfs.System, agent)
	for _, child := range children {
		if s, err := procfs.Read(procfs.System, child); err == nil && s.Name == parent.Name {
			pid = child
		}
	}
	if pid == 0 {
		t.Fatalf("agent %d has no runner among %v", agent, named(children))
	}
	return pid
}

// TestAgentDiesWhileRunnerIsStopped: nothing is left, also if the kernel does not continue the runner
// as part of an orphaned process group: it is adopted by this process, which is in its session.
func TestAgentDiesWhileRunnerIsStopped(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) })
	nothingLeft(t)
	cmd, _ := startAgent(t, 1, nil)
	runner := runnerOf(t, cmd.Process.Pid)
	t.Cleanup(func() { _ = syscall.Kill(runner, syscall.SIGKILL) })
	_ = syscall.Kill(runner, syscall.SIGSTOP)
	eventually(t, "the runner is stopped", func() bool { return procfs.IsStopped(procfs.System, runner) })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, "the runner has ended", func() bool { return dead(runner) })
}

// TestNoStartWhenAlone: a runner starts no worker when its agent or task has ended, although it has
// received the order before it learns that.
func TestNoStartWhenAlone(t *testing.T) {
	nothingLeft(t)
	for _, ended := range []string{"none", "agent", "task"} {
		agent, task := socketPair(t), socketPair(t)
		s := &supervisor{
			conn: frames.New(agent[0]), task: task[0], parent: os.Getpid(), starter: newStarter(),
			children: newChildren(), reports: newReports(),
		}
		want := 0
		switch ended {
		case "agent":
			agent[1] = closed(agent[1])
		case "task":
			task[1] = closed(task[1])
		default:
			want = 1
		}
		a, err := s.newAttempt(&Tree{Workers: []Worker{sh(t, "true")}}, os.Getpid(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if a.step(false); len(s.starter.requests) != want {
			t.Errorf("%s has ended: %d workers are started, want %d", ended, len(s.starter.requests), want)
		}
		s.conn.Close()
		for _, fd := range []int{agent[1], task[0], task[1]} {
			closed(fd)
		}
	}
}

// closed closes a descriptor, unless it is -1, and returns -1.
func closed(fd int) int {
	_ = unix.Close(fd)
	return -1
}

func socketPair(t *testing.T) [2]int {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ends
}

// dead reports whether pid has ended.
func dead(pid int) bool {
	s, err := procfs.Read(procfs.System, pid)
	return err != nil || s.State == 'Z' || s.State == 'X'
}

// TestStoppedJobOfScript: a script starts an agent while another of its jobs is stopped. When the
// tree ends, the process group must not become orphaned by that: the kernel would send SIGHUP to
// it.
func TestStoppedJobOfScript(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `sleep 1000 & job=$!
kill -STOP $job
until grep -q "^State:.T" /proc/$job/status; do :; done
"$0"
kill -CONT $job && echo "the job still runs"
kill $job`, self)
	cmd.Env = []string{
		roleEnv + "=" + listener, markerEnv + "=" + marker(t), argEnv + "=exit 0",
		"PATH=" + os.Getenv("PATH"),
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Run(); err != nil {
		t.Errorf("the script ended with: %v", err)
	}
	l.want("ended 0 group signal 0 <nil>", "the job still runs")
}

// TestAgentAndHolderKilled: nothing is left that kills the tree, but workers die with the runner.
func TestAgentAndHolderKilled(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleEnv + "=" + "plain agent", markerEnv + "=" + marker(t)}
	cmd.Stdout = out
	startMarked(t, cmd)
	l.want("ready", "ready")
	runner := runnerOf(t, cmd.Process.Pid)
	syscall.Kill(cmd.Process.Pid, syscall.SIGSTOP) // so that it cannot kill the tree
	syscall.Kill(runner, syscall.SIGKILL)
	syscall.Kill(cmd.Process.Pid, syscall.SIGKILL)
	eventually(t, "all processes have ended", func() bool {
		return dead(runner) && len(marked(marker(t))) == 0
	})
}

var _ = role("plain agent", func() {
	w := child(ignoringSignals)
	Run(context.Background(), Tree{Workers: []Worker{w, w}, Source: Signals(syscall.SIGTERM)})
})

// TestSixtyFourWorkers stops 63 workers because another one fails.
func TestSixtyFourWorkers(t *testing.T) {
	nothingLeft(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	tree := Tree{Grace: longGrace}
	for range 63 {
		w := sh(t, "exec sleep 1000")
		w.Stderr, w.Capture = os.Stderr, true
		tree.Workers = append(tree.Workers, w)
	}
	tree.Workers = append(tree.Workers, sh(t, "exit 9"))
	var failed time.Time
	tree.Ended = func(i int, r Result) {
		if !r.Stopped {
			failed = time.Now()
			cancel(errors.New("a worker failed"))
		}
	}
	begun := time.Now()
	results := mustRun(t, ctx, tree)
	t.Logf("64 workers started within %v, ended within %v", failed.Sub(begun), time.Since(failed))
	for i, e := range results[:63] {
		if e.Signal != syscall.SIGTERM || !e.Stopped {
			t.Errorf("worker %d: %+v, want SIGTERM and Stopped", i, e)
		}
	}
	if results[63].Code != 9 || results[63].Stopped {
		t.Errorf("worker 63: %+v, want Code 9, not Stopped", results[63])
	}
}
