package wrap

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The agent says a little to the watchdog at the end, however many workers there are: both sides write more than a socket
// takes otherwise, and neither reads.
func TestManyWorkersEndTogether(t *testing.T) {
	const n = 700
	nothingLeft(t)
	var up sync.WaitGroup
	up.Add(n)
	tree := Tree{Grace: time.Second, Linger: true}
	for range n {
		tree.Workers = append(tree.Workers, sh(t, "exec sleep 1000"))
	}
	pids := make([]int, n)
	tree.Started = func(i, pid int) { pids[i] = pid; up.Done() }
	r := begin(t, tree)
	up.Wait()
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGTERM)
	}
	r.cancel(&Stop{Delivered: syscall.SIGTERM})
	results, err := r.wait()
	if err != nil || len(results) != n {
		t.Fatalf("%d results, %v", len(results), err)
	}
	for i, r := range results {
		if r.Signal != syscall.SIGTERM {
			t.Errorf("worker %d: %+v", i, r)
		}
	}
}

// pkill finds processes by their names. Which ones it finds is told to nobody, so it must not find the sentinel.
func TestPkill(t *testing.T) {
	nothingLeft(t)
	cmd, l := startListener(t, nil)
	dog, sentinel := watchdogOf(t, cmd.Process.Pid)
	found := []int{cmd.Process.Pid}
	for _, pid := range []int{dog, sentinel} {
		if exec.Command("sh", "-c", fmt.Sprintf("grep -q rdzv /proc/%d/comm", pid)).Run() == nil {
			found = append(found, pid)
		}
	}
	if len(found) != 2 || found[1] != dog {
		t.Fatalf("pkill finds %v", found)
	}
	for _, pid := range found {
		syscall.Kill(pid, syscall.SIGUSR1)
	}
	l.inAnyOrder("agent: 10 shared=false", "user-defined-signal-1")
	syscall.Kill(-cmd.Process.Pid, syscall.SIGUSR2)
	l.inAnyOrder("agent: 12 shared=true", "user-defined-signal-2", "ended 7 outside 0 <nil>")
}

// sweeper sweeps while it can open no file.
var sweeper = role("sweeper", func() {
	child := exec.CommandContext(context.Background(), "sleep", "1000")
	if err := child.Start(); err != nil {
		fmt.Println(err)
		return
	}
	var limit unix.Rlimit
	unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &limit)
	unix.Prlimit(0, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: limit.Max}, nil)
	err := sweep(map[int]bool{}, func(int, syscall.WaitStatus) {})
	child.Process.Kill()
	child.Wait()
	fmt.Println(err)
})

// Who cannot look has not found that nothing is left.
func TestSweepThatCannotLook(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleEnv + "=" + sweeper, markerEnv + "=" + marker(t), "PATH=" + os.Getenv("PATH")}
	cmd.Stdout = out
	startMarked(t, cmd)
	l.want("cannot look for what the workers have left behind: open " + strconv.Itoa(cmd.Process.Pid) +
		"/task: too many open files")
}
