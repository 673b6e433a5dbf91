package wrap

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/procfs"
	"rdzv/internal/proctest"
)

// TestGroupOutsidePIDNamespace: in a new pid namespace the process group of the agent may have no
// number. Then all processes of the tree stay in that group.
func TestGroupOutsidePIDNamespace(t *testing.T) {
	flags := strings.Fields("--pid --fork --mount-proc --kill-child")
	if os.Getuid() != 0 {
		flags = append(flags, "--map-root-user")
	}
	proctest.NeedUnshare(t, flags...)
	nothingLeft(t)
	out, l := lines(t)
	cmd := exec.Command("unshare", append(flags, os.Args[0])...)
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
	l.inAnyOrder("agent: 28 shared=false", "window-changed")
}

// TestFrozenProcess1: an agent that is process 1 of its pid namespace, as in a container, and is
// stopped alone: the runner cannot kill it, but the tree is killed. When it is continued it learns
// of that.
func TestFrozenProcess1(t *testing.T) {
	flags := strings.Fields("--pid --fork --mount-proc --kill-child")
	if os.Getuid() != 0 {
		flags = append(flags, "--map-root-user")
	}
	proctest.NeedUnshare(t, flags...)
	nothingLeft(t)
	out, l := lines(t)
	cmd := exec.Command("unshare", append(flags, os.Args[0])...)
	cmd.Env = []string{
		roleEnv + "=" + frozenAgent, markerEnv + "=" + marker(t), "PATH=" + os.Getenv("PATH"),
	}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	l.want("ready")
	children, err := procfs.Children(procfs.System, cmd.Process.Pid)
	if err != nil || len(children) != 1 {
		t.Fatalf("unshare has the children %v (%v), want process 1", children, err)
	}
	agent := children[0]
	syscall.Kill(agent, syscall.SIGSTOP)
	eventually(t, "nothing but the agent is left", func() bool {
		left, err := procfs.Children(procfs.System, agent)
		return err == nil && !slices.ContainsFunc(left, func(pid int) bool { return !dead(pid) })
	})
	syscall.Kill(agent, syscall.SIGCONT)
	l.want("returned " + ErrRunner.Error())
}

// frozenAgent is an agent of a resistantTree that may not be stopped.
var frozenAgent = role("agent that may not be stopped", func() {
	_, err := Run(ctxNever, Tree{
		Workers: []Worker{{
			Path: "/bin/sh", Args: []string{"sh", "-c", resistantTree}, Env: os.Environ(),
			Stdout: os.Stdout, Stderr: os.Stderr,
		}},
		Source: Signals(syscall.SIGTERM), FrozenLimit: 500 * time.Millisecond,
	})
	fmt.Println("returned", err)
})

// TestStopInPIDNamespace: a program in a pid namespace does not use up the grace period because the
// kernel or unshare keeps SIGTERM from it.
func TestStopInPIDNamespace(t *testing.T) {
	unshare := "unshare --pid --fork --mount-proc --kill-child "
	if os.Getuid() != 0 {
		unshare += "--map-root-user "
	}
	proctest.NeedUnshare(t, strings.Fields(unshare)[1:]...)
	nothingLeft(t)
	const catches = `sh -c 'trap "echo SIGTERM; exit 3" TERM; echo ready; sleep 1000 & wait'`
	for _, row := range []struct {
		name   string
		script string
		prints []string
	}{
		{"none catches it", "exec " + unshare + `sh -c "echo ready; sleep 1000; :"`, nil},
		{"process 1 catches it", "exec " + unshare + catches, []string{"SIGTERM"}},
		{"another one catches it", "exec " + unshare + `sh -c "$0; exit 3"`, []string{"SIGTERM"}},
		{"below a process that dies", unshare + `sh -c "echo ready; sleep 1000; :"; :`, nil},
		{"below one that catches it", `trap 'echo outside; kill -9 $!; wait; exit' TERM
			` + unshare + `sh -c "echo ready; sleep 1000; :" & wait`, []string{"outside"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			out, l := lines(t)
			w := sh(t, row.script)
			w.Stdout, w.Args = out, append(w.Args, catches)
			r := begin(t, Tree{Workers: []Worker{w}, Grace: longGrace})
			l.want("ready")
			begun := time.Now()
			r.cancel(nil)
			l.want(row.prints...)
			if e := r.one(); !e.Stopped {
				t.Errorf("%+v, want Stopped", e)
			}
			if took := time.Since(begun); took > longGrace/2 {
				t.Errorf("the worker ended after %v, the grace is %v", took, longGrace)
			}
		})
	}
}
