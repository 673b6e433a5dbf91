package wrap

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestForeignGroup: in a new pid namespace the agent's process group may be one that has no number there. All then
// stay in it.
func TestForeignGroup(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("needs root to make a pid namespace")
		return
	}
	nothingLeft(t)
	out, l := lines(t)
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", os.Args[0])
	cmd.Env = []string{roleEnv + "=" + listener, markerEnv + "=" + marker(t), argEnv + "=", "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	l.want("ready")
	syscall.Kill(-cmd.Process.Pid, syscall.SIGWINCH) // which does not kill unshare
	l.inAnyOrder("agent: 28 shared=true", "window-changed")
}
