package killtree

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
)

// generations are a process and four below it, each the child of the one before, with two sessions.
// It prints "ready".
const generations = `sh -c 'setsid -w sh -c "sh -c \"sleep 1000 & echo ready; wait\" & wait" & wait' & wait`

// start starts a script that prints "ready".
func start(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	// Orphans become children of this process.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", script)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("read %q, %v", line, err)
	}
	return cmd
}

// TestBelow: all generations are known, and receive SIGKILL, before the first has died.
func TestBelow(t *testing.T) {
	cmd := start(t, generations)
	all := descendants(cmd.Process.Pid)
	if len(all) != 4 {
		t.Errorf("descendants %v, want 4", all)
	}
	below := process{cmd.Process.Pid, child}.below(mostBelow)
	if pids := pidsOf(below); !slices.Equal(pids, all) {
		t.Errorf("%v are below, want %v", pids, all)
	}
	lists := 0
	new(Killer).Kill(func() []int { lists++; return []int{cmd.Process.Pid} })
	if lists != 2 {
		t.Errorf("%d passes, want a second one that finds nothing new", lists)
	}
	eventually(t, all)
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the child: %v, want killed", err)
	}
	for _, p := range below {
		_ = unix.Close(p.fd)
	}
}

// TestCreatedMeanwhile: a process that is created after the others have been listed is killed too,
// before the end of its parent.
func TestCreatedMeanwhile(t *testing.T) {
	for range 10 {
		cmd := start(t, "echo ready; while :; do sleep 1000 & done")
		time.Sleep(20 * time.Millisecond)
		new(Killer).Kill(func() []int {
			own, _ := procfs.Children(procfs.System, os.Getpid())
			return own
		})
		all := descendants(os.Getpid())
		for _, pid := range all {
			if !isKilled(pid) {
				t.Errorf("process %d, one of %d, has not received SIGKILL", pid, len(all))
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = cmd.Wait()
		for _, pid := range all {
			_, _ = syscall.Wait4(pid, nil, 0, nil)
		}
	}
}

// isKilled tells whether a process has ended, or is about to because of SIGKILL.
func isKilled(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch name {
		case "State":
			if value[0] == 'Z' || value[0] == 'X' {
				return true
			}
		case "SigPnd", "ShdPnd":
			if set, _ := strconv.ParseUint(value, 16, 64); set&(1<<(syscall.SIGKILL-1)) != 0 {
				return true
			}
		}
	}
	return false
}

// TestMany: no more than some pidfds are opened.
func TestMany(t *testing.T) {
	cmd := start(t, "for i in 1 2 3 4 5; do sleep 1000 & done; echo ready; wait")
	some := process{cmd.Process.Pid, child}.below(3)
	if len(some) != 3 {
		t.Errorf("%d of 5 children, want 3", len(some))
	}
	for _, p := range some {
		_ = unix.Close(p.fd)
	}
	all := descendants(cmd.Process.Pid)
	new(Killer).Kill(func() []int { return []int{cmd.Process.Pid} })
	_ = cmd.Wait()
	eventually(t, all)
}

// TestReaped: of a process that has ended, whose pid another one may have got, nothing is killed.
func TestReaped(t *testing.T) {
	cmd := start(t, "sleep 1000 & echo ready; wait")
	fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	if err != nil {
		t.Skip(err)
	}
	defer unix.Close(fd)
	p := process{cmd.Process.Pid, fd}
	children := p.children(mostBelow)
	if len(children) != 1 || !p.exists() {
		t.Fatalf("children %v, want one; it exists: %t", children, p.exists())
	}
	_ = cmd.Process.Kill()
	if err := cmd.Wait(); err == nil || p.exists() {
		t.Errorf("%v; it exists: %t", err, p.exists())
	}
	other := start(t, "sleep 1000 & echo ready; wait")
	if wrong := (process{other.Process.Pid, fd}).children(mostBelow); len(wrong) > 0 {
		t.Errorf("children of another process with its pid: %v", wrong)
	}
	adopted := children[0].pid
	new(Killer).Kill(func() []int { return []int{other.Process.Pid, adopted} })
	_ = unix.Close(children[0].fd)
	_ = other.Wait()
	eventually(t, []int{children[0].pid})
}

// eventually waits until none of the processes runs.
func eventually(t *testing.T, pids []int) {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); len(running(pids)) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("the processes %v still run, of %v", running(pids), pids)
		}
	}
}

func pidsOf(all []process) (pids []int) {
	for _, p := range all {
		pids = append(pids, p.pid)
	}
	return pids
}

func descendants(pid int) (all []int) {
	children, _ := procfs.Children(procfs.System, pid)
	for _, child := range children {
		all = append(append(all, child), descendants(child)...)
	}
	return all
}

func running(pids []int) []int {
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool {
		p, err := procfs.Read(procfs.System, pid)
		return err != nil || p.State == 'Z' || p.State == 'X'
	})
}
