package watchdog

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/procfs"
)

// stoppedProcess starts a process and stops it: with a debugger, or by SIGSTOP.
func stoppedProcess(t *testing.T, debugger bool) (pid int) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: debugger}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	want := byte('t')
	if !debugger {
		cmd.Process.Signal(syscall.SIGSTOP)
		want = 'T'
	}
	for deadline := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		p, err := procfs.Read(procfs.System, cmd.Process.Pid)
		if err == nil && p.State == want {
			return cmd.Process.Pid
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the process is in state %c, want %c (%v)", p.State, want, err)
		}
	}
}

func TestDebuggedProcessIsNotStopped(t *testing.T) {
	runtime.LockOSThread() // only the thread that has started a process traces it
	defer runtime.UnlockOSThread()
	if Stopped(stoppedProcess(t, true)) {
		t.Error("a process under a debugger counts as stopped")
	}
}

// A job whose processes are all stopped is not frozen.
func TestSuspended(t *testing.T) {
	group := sentinel{pid: stoppedProcess(t, false)}
	runs, stopped := &worker{}, &worker{suspended: true}
	for _, row := range []struct {
		name     string
		workers  []*worker
		sentinel sentinel
		want     bool
	}{
		{"all workers", []*worker{stopped, stopped}, sentinel{}, true},
		{"one of two workers", []*worker{stopped, runs}, sentinel{}, false},
		{"none of the workers", []*worker{runs}, sentinel{}, false},
		{"all workers have ended", nil, sentinel{}, false},
		{"process group, all workers have ended", nil, group, true},
		{"process group without a worker's own", []*worker{runs}, group, true},
	} {
		w := &watchdog{workers: row.workers, sentinel: row.sentinel}
		if got := w.suspended(); got != row.want {
			t.Errorf("%s: suspended = %v, want %v", row.name, got, row.want)
		}
	}
}
