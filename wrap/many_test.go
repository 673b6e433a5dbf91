package wrap

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
)

// TestManyWorkersEndTogether: the number of orders at the end does not grow with the workers.
// Otherwise both sides would write more than the socket buffers hold, and neither would read.
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
		t.Fatalf("Run = %d results, %v, want %d and no error", len(results), err, n)
	}
	for i, r := range results {
		if r.Signal != syscall.SIGTERM {
			t.Errorf("worker %d: %+v, want SIGTERM", i, r)
		}
	}
}

// TestPkill: "pkill rdzv" and "pkill -f rdzv" do not find watchdog, sentinel and holder. One of them
// is left that kills the tree, and a signal does not look as if it had been sent to the group.
func TestPkill(t *testing.T) {
	nothingLeft(t)
	cmd, l := startListener(t, nil)
	dog, sentinel := watchdogOf(t, cmd.Process.Pid)
	holder, _ := procfs.Read(procfs.System, dog)
	found := []int{cmd.Process.Pid}
	for _, pid := range []int{dog, sentinel, holder.Parent} {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		t.Logf("process %d: %q, %q", pid, name, line)
		if strings.Contains(string(name)+string(line), "rdzv") {
			found = append(found, pid)
		}
	}
	if len(found) != 1 {
		t.Fatalf("pkill finds %v, want agent %d", found, cmd.Process.Pid)
	}
	for _, pid := range found {
		syscall.Kill(pid, syscall.SIGUSR1)
	}
	l.inAnyOrder("agent: 10 shared=false", "user-defined-signal-1")
	syscall.Kill(-cmd.Process.Pid, syscall.SIGUSR2)
	l.inAnyOrder("agent: 12 shared=true", "user-defined-signal-2", "ended 7 group signal 0 <nil>")
}

// sweeper calls sweep while it cannot open files.
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

// TestSweepCannotListChildren: sweep returns an error if it cannot list the children.
func TestSweepCannotListChildren(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{
		roleEnv + "=" + sweeper, markerEnv + "=" + marker(t), "PATH=" + os.Getenv("PATH"),
	}
	cmd.Stdout = out
	startMarked(t, cmd)
	l.want(fmt.Sprintf("cannot list the processes that the workers left: open %d/task: %s",
		cmd.Process.Pid, "too many open files"))
}
