package wrap

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestGroupOutsidePIDNamespace: in a new pid namespace the process group of the agent may have no
// number. Then all processes of the tree stay in that group.
func TestGroupOutsidePIDNamespace(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("only root can create a pid namespace")
		return
	}
	nothingLeft(t)
	out, l := lines(t)
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", os.Args[0])
	cmd.Env = []string{
		roleEnv + "=" + listener, markerEnv + "=" + marker(t), argEnv + "=",
		"PATH=" + os.Getenv("PATH"),
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	l.want("ready")
	syscall.Kill(-cmd.Process.Pid, syscall.SIGWINCH) // does not end unshare
	l.inAnyOrder("agent: 28 shared=true", "window-changed")
}
