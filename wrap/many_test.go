package wrap

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
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

// TestPkill: "pkill rdzv" and "pkill -f rdzv" do not find the runner, which kills the tree.
func TestPkill(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"rdzv", "exec", "--", "rdzv"}
	cmd.Env = []string{roleEnv + "=" + listener, markerEnv + "=" + marker(t), argEnv + "="}
	cmd.Stdout = out
	startMarked(t, cmd)
	l.want("ready")
	runner := runnerOf(t, cmd.Process.Pid)
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", runner))
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", runner))
	if err != nil || strings.Contains(string(name)+string(line), "rdzv") {
		t.Errorf("the runner is %q, %q (%v)", name, line, err)
	}
	syscall.Kill(cmd.Process.Pid, syscall.SIGKILL)
	eventually(t, "all have ended", func() bool { return len(marked(marker(t))) == 0 })
}
