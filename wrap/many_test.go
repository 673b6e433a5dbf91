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

// TestPkill: "pkill rdzv" and "pkill -f rdzv" do not find the holder, which kills the tree.
func TestPkill(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"rdzv", "exec", "--", "rdzv"}
	cmd.Env = []string{roleEnv + "=" + listener, markerEnv + "=" + marker(t), argEnv + "="}
	cmd.Stdout = out
	startMarked(t, cmd)
	l.want("ready")
	holder := holderOf(t, cmd.Process.Pid)
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", holder))
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", holder))
	if err != nil || strings.Contains(string(name)+string(line), "rdzv") {
		t.Errorf("the holder is %q, %q (%v)", name, line, err)
	}
	syscall.Kill(cmd.Process.Pid, syscall.SIGKILL)
	eventually(t, "all have ended", func() bool { return len(marked(marker(t))) == 0 })
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
