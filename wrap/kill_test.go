package wrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/procfs"
	"rdzv/wrap/internal/watchdog"
)

// thicket is a worker whose descendants do all they can to survive: they ignore signals, fork twice, open sessions and
// hold the streams. It prints "ready" when all are there.
const thicket = `
trap "" TERM INT HUP QUIT USR1 USR2 ABRT
for i in 1 2 3; do
	(setsid sh -c 'sleep 1000 & (setsid sleep 1001 &); sleep 1002' &) &
	sh -c '(sleep 1003 & sleep 1004 &) ; sleep 1005' &
done
until [ "$(grep -al "$WRAP_TEST_MARKER" /proc/[0-9]*/environ 2>/dev/null | wc -l)" -ge 20 ]; do sleep 0.01; done
echo ready
sleep 1006`

// agent runs a tree of the thicket and a stubborn worker until it is killed.
var agent = role("agent", func() {
	n, _ := strconv.Atoi(os.Getenv(argEnv))
	tree := Tree{Source: Signals(syscall.SIGTERM)}
	for i := range n {
		w := Worker{Path: "/bin/sh", Args: []string{"sh", "-c", thicket}, Env: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr}
		if i > 0 {
			w = child(stubborn)
		}
		tree.Workers = append(tree.Workers, w)
	}
	_, err := Run(context.Background(), tree)
	fmt.Println("returned", err)
})

// child is a worker for an agent that itself plays a role.
func child(role string) Worker {
	env := []string{roleEnv + "=" + role, markerEnv + "=" + os.Getenv(markerEnv)}
	return Worker{Path: "/proc/self/exe", Args: []string{role}, Env: env, Stdout: os.Stdout, Stderr: os.Stderr, Capture: true}
}

// startAgent starts an agent with n workers in a process group of its own, as launchers do, and waits until all its
// processes are up.
func startAgent(t *testing.T, n int, change func(*exec.Cmd)) (*exec.Cmd, lineReader) {
	t.Helper()
	out, l := lines(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleEnv + "=" + agent, markerEnv + "=" + marker(t), argEnv + "=" + strconv.Itoa(n), "PATH=" + os.Getenv("PATH")}
	cmd.Stdout = out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if change != nil {
		change(cmd)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for range n {
		l.want("ready")
	}
	return cmd, l
}

// watchdogOf finds the watchdog of an agent, and its sentinel.
func watchdogOf(t *testing.T, agent int) (dog, sentinel int) {
	t.Helper()
	all, _ := os.ReadDir("/proc")
	for _, e := range all {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		s, err := procfs.Read(procfs.System, pid)
		if err != nil || !bytes.HasPrefix(line, []byte(watchdog.Name+"\x00"+strconv.Itoa(agent)+"\x00")) {
			continue
		}
		if s.Parent == agent {
			dog = pid
		} else if s.Name == watchdog.SentinelName {
			sentinel = pid
		}
	}
	if dog == 0 || sentinel == 0 {
		t.Fatalf("watchdog %d, sentinel %d", dog, sentinel)
	}
	return dog, sentinel
}

// dead reports whether pid is gone or a zombie.
func dead(pid int) bool {
	s, err := procfs.Read(procfs.System, pid)
	return err != nil || s.State == 'Z' || s.State == 'X'
}

// TestWhoeverIsKilled kills each of the processes that could be, and looks for survivors.
func TestWhoeverIsKilled(t *testing.T) {
	for _, row := range []struct {
		name string
		kill func(agent, dog, sentinel int) []int
		says string // what the agent then prints, if it lives
	}{
		{"agent", func(agent, _, _ int) []int { return []int{agent} }, ""},
		{"watchdog", func(_, dog, _ int) []int { return []int{dog} }, "returned the watchdog died"},
		{"process group of the agent", func(agent, _, _ int) []int { return []int{-agent} }, ""},
		{"process group of the watchdog", func(_, dog, _ int) []int { return []int{-dog} }, "returned the watchdog died"},
	} {
		t.Run(row.name, func(t *testing.T) {
			nothingLeft(t)
			cmd, l := startAgent(t, 3, nil)
			dog, sentinel := watchdogOf(t, cmd.Process.Pid)
			begun := time.Now()
			for _, pid := range row.kill(cmd.Process.Pid, dog, sentinel) {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "all are gone", func() bool {
				return dead(cmd.Process.Pid) && dead(dog) && dead(sentinel) && len(marked(marker(t))) == 0
			})
			t.Logf("all gone after %v", time.Since(begun))
			if row.says != "" {
				l.want(row.says)
			}
		})
	}
}

// TestStoppedNeighbour: a tree that ends in a session of its own does no harm to the script around it, one of whose jobs is
// stopped: the kernel ends a process group that has lost its last tie to the rest of its session so.
func TestStoppedNeighbour(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `sleep 1000 & neighbour=$!
kill -STOP $neighbour
until grep -q "^State:.T" /proc/$neighbour/status; do :; done
"$0"
kill -CONT $neighbour && echo "the neighbour lives"
kill $neighbour`, self)
	cmd.Env = []string{roleEnv + "=" + listener, markerEnv + "=" + marker(t), argEnv + "=exit 0", "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Run(); err != nil {
		t.Errorf("the script ended with: %v", err)
	}
	l.want("ended 0 outside 0 <nil>", "the neighbour lives")
}

// TestAgentAndWatchdogKilled: nobody is left to kill the descendants, but the workers die with the watchdog.
func TestAgentAndWatchdogKilled(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleEnv + "=" + "plain agent", markerEnv + "=" + marker(t)}
	cmd.Stdout = out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it will be stopped, and the end of its sentinel brings SIGHUP to its group
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	l.want("ready", "ready")
	dog, sentinel := watchdogOf(t, cmd.Process.Pid)
	syscall.Kill(cmd.Process.Pid, syscall.SIGSTOP) // it must not sweep before it is killed itself
	syscall.Kill(dog, syscall.SIGKILL)
	syscall.Kill(cmd.Process.Pid, syscall.SIGKILL)
	eventually(t, "all are gone", func() bool { return dead(dog) && dead(sentinel) && len(marked(marker(t))) == 0 })
}

var _ = role("plain agent", func() {
	w := child(stubborn)
	Run(context.Background(), Tree{Workers: []Worker{w, w}, Source: Signals(syscall.SIGTERM)})
})

// TestSentinelKilled: without it the tree lives on, and signals count as for the agent alone.
func TestSentinelKilled(t *testing.T) {
	nothingLeft(t)
	cmd, _ := startAgent(t, 1, nil)
	dog, sentinel := watchdogOf(t, cmd.Process.Pid)
	syscall.Kill(sentinel, syscall.SIGKILL)
	eventually(t, "the sentinel is gone", func() bool { return dead(sentinel) })
	if dead(dog) || len(marked(marker(t))) < 10 {
		t.Error("the tree is gone too")
	}
}

// TestWatchdogSurvives: it takes every signal but the two that cannot be taken, and those of thread libraries.
func TestWatchdogSurvives(t *testing.T) {
	nothingLeft(t)
	cmd, _ := startAgent(t, 1, nil)
	dog, sentinel := watchdogOf(t, cmd.Process.Pid)
	for s := syscall.Signal(1); s <= 64; s++ {
		switch s {
		case syscall.SIGKILL, syscall.SIGSTOP, 32, 33, 34:
		default:
			syscall.Kill(dog, s)
			syscall.Kill(sentinel, s)
		}
	}
	for _, pid := range []int{dog, sentinel} {
		eventually(t, "both sleep again", func() bool {
			s, err := procfs.Read(procfs.System, pid)
			return err != nil || s.State == 'S'
		})
	}
	if dead(dog) || dead(sentinel) {
		t.Error("one of them died")
	}
}

// TestWatchdogFrozen: a watchdog that does nothing any more is replaced by the agent.
func TestWatchdogFrozen(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	w := sh(t, `(setsid sleep 1000 &) ; echo ready; exec sleep 1000`)
	w.Stdout = out
	r := begin(t, Tree{Workers: []Worker{w}, Grace: time.Millisecond})
	l.want("ready")
	guards.Lock()
	for pid := range guards.pids {
		syscall.Kill(pid, syscall.SIGSTOP)
		eventually(t, "the watchdog has stopped", func() bool {
			state, err := readState(pid)
			return err != nil || state == 'T'
		})
	}
	guards.Unlock()
	r.cancel(nil)
	results, err := r.wait()
	if !errors.Is(err, ErrWatchdog) || results[0].Signal != syscall.SIGKILL || !errors.Is(results[0].Err, ErrWatchdog) {
		t.Errorf("%+v, %v", results, err)
	}
}

// TestThicket stops it by every way there is.
func TestThicket(t *testing.T) {
	for _, row := range []struct {
		name string
		stop func(r *running)
	}{
		{"term, kill", func(r *running) { r.cancel(nil) }},
		{"kill", func(r *running) { r.kill() }},
	} {
		t.Run(row.name, func(t *testing.T) {
			nothingLeft(t)
			out, l := lines(t)
			w := sh(t, thicket)
			w.Stdout, w.Stderr, w.Capture = out, out, true
			r := begin(t, Tree{Workers: []Worker{w}, Grace: 30 * time.Millisecond})
			l.want("ready")
			n, begun := len(marked(marker(t))), time.Now()
			row.stop(r)
			if e := r.one(); e.Signal != syscall.SIGKILL || !e.Stopped {
				t.Errorf("%+v", e)
			}
			t.Logf("%d processes gone after %v", n, time.Since(begun))
		})
	}
}

// TestSixtyFour runs as many workers and ends them all because one fails.
func TestSixtyFour(t *testing.T) {
	nothingLeft(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	tree := Tree{Grace: ample}
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
			cancel(errors.New("one failed"))
		}
	}
	begun := time.Now()
	results := mustRun(t, ctx, tree)
	t.Logf("64 started after %v, gone after another %v", failed.Sub(begun), time.Since(failed))
	for i, e := range results[:63] {
		if e.Signal != syscall.SIGTERM || !e.Stopped {
			t.Errorf("%d: %+v", i, e)
		}
	}
	if results[63].Code != 9 || results[63].Stopped {
		t.Errorf("%+v", results[63])
	}
}
