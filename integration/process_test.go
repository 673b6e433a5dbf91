package integration

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/proctest"
)

// waitLimit is how long a test waits for any event. It is much longer than any takes, even on a
// busy machine.
const waitLimit = 60 * time.Second

// A process is a command that a test has started, and its output.
type process struct {
	t    *testing.T
	argv []string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and its output has been read

	started time.Time

	mu      sync.Mutex
	lines   []string      // of stdout and stderr, in the order in which they were read
	changed chan struct{} // closed when there are more lines
}

// start starts a command in the place, in a process group of its own, as a shell does.
func (p *place) start(argv ...string) *process {
	p.t.Helper()
	return p.startWith(nil, argv...)
}

// startWith does the same with variables added to the environment.
func (p *place) startWith(env []string, argv ...string) *process {
	p.t.Helper()
	c := p.command(env, argv)
	c.begin()
	go c.wait()
	return c
}

// startOnTerminal does the same with stderr on a terminal.
func (p *place) startOnTerminal(env []string, argv ...string) *process {
	p.t.Helper()
	c := p.command(env, argv)
	master, slave := proctest.OpenTerminal(p.t)
	c.cmd.Stderr = slave
	c.begin()
	slave.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&lineReader{to: c}, master) // until no process has the terminal open
	}()
	go func() {
		defer close(c.done)
		defer master.Close()
		_ = c.cmd.Wait()
		_ = master.SetReadDeadline(time.Now().Add(c.cmd.WaitDelay))
		<-read
	}()
	return c
}

// command prepares a command for begin.
func (p *place) command(env, argv []string) *process {
	env = append(slices.Clone(p.env), env...)
	argv = keepVariables(argv, env)
	c := &process{t: p.t, argv: argv, done: make(chan struct{}), changed: make(chan struct{})}
	c.cmd = exec.Command(argv[0], argv[1:]...)
	c.cmd.Env = env
	c.cmd.Dir = p.root
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.cmd.Stdout, c.cmd.Stderr = &lineReader{to: c}, &lineReader{to: c}
	c.cmd.WaitDelay = time.Second // for surviving processes with open output; checkClean finds them
	p.processes = append(p.processes, c)
	return c
}

// keepVariables returns a command line that keeps TMPDIR and PATH also under sudo (asRootWithEnv):
// the dynamic linker removes TMPDIR from the environment of set-user-ID programs (ld.so(8)), and
// sudo replaces PATH.
func keepVariables(argv, env []string) []string {
	at := slices.Index(argv, "env")
	if argv[0] != "sudo" || at < 0 {
		return argv
	}
	for at++; strings.Contains(argv[at], "="); at++ {
	}
	kept := slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return !strings.HasPrefix(v, "TMPDIR=") && !strings.HasPrefix(v, "PATH=")
	})
	return slices.Insert(slices.Clone(argv), at, kept...) // the last ones count
}

func (c *process) begin() {
	c.t.Helper()
	c.started = time.Now()
	if err := c.cmd.Start(); err != nil {
		close(c.done)
		c.t.Fatalf("cannot start %q: %v", c.argv, err)
	}
}

// wait waits for the end. cmd.ProcessState says how it ended.
func (c *process) wait() {
	defer close(c.done)
	_ = c.cmd.Wait()
}

// code waits for the end and returns the exit code, or 128+n if signal n ended the process.
func (c *process) code() int {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(waitLimit):
		c.t.Fatalf("%q has not ended within %v", c.argv, waitLimit)
	}
	status := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// checkCode waits for the end and checks the exit code.
func (c *process) checkCode(want int) {
	c.t.Helper()
	if code := c.code(); code != want {
		c.t.Errorf("%s ended with exit code %d, want %d", c.program(), code, want)
	}
}

// checkCodes does so for several processes.
func checkCodes(want int, some ...*process) {
	for _, c := range some {
		c.t.Helper()
		c.checkCode(want)
	}
}

// program is the name of what the command line runs, for messages.
func (c *process) program() string {
	for _, word := range c.argv {
		switch name := filepath.Base(word); name {
		case "env", "sudo", "hosts", "slurm":
		case "rdzv", "mpirun", "mpirun.openmpi", "mpiexec.hydra", "srun", "sbatch", "salloc",
			"scancel":
			return name
		}
	}
	return filepath.Base(c.argv[0])
}

// pid is the process that the command line names. If the user is not root, it starts with sudo,
// which remains and cannot pass on SIGKILL.
func (c *process) pid() int {
	pid := c.cmd.Process.Pid
	for nameOf(pid) == "sudo" {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		child, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			break // it has ended, or has not started yet
		}
		pid = child
	}
	return pid
}

// signal sends a signal to the process only.
func (c *process) signal(s syscall.Signal) {
	c.t.Helper()
	if err := syscall.Kill(c.pid(), s); err != nil {
		c.t.Fatalf("cannot send %v to %q: %v", s, c.argv, err)
	}
	if s == syscall.SIGCONT {
		continueSudo(c.t, c.cmd.Process.Pid)
	}
}

// continueSudo continues a sudo, which stops itself when its command stops.
func continueSudo(t *testing.T, pid int) {
	if nameOf(pid) == "sudo" {
		proctest.RunAsRoot(t, "sh", "-c", fmt.Sprint("kill -CONT ", pid))
	}
}

// interrupt sends SIGINT to its process group, as a terminal does for Ctrl-C.
func (c *process) interrupt() {
	c.t.Helper()
	if err := syscall.Kill(-c.cmd.Process.Pid, syscall.SIGINT); err != nil {
		c.t.Fatalf("cannot interrupt %q: %v", c.argv, err)
	}
}

// retypeTime is how long a user takes to type Ctrl-C again.
const retypeTime = 300 * time.Millisecond

// endsWithin waits for the end, and tells whether it came within the time.
func (c *process) endsWithin(d time.Duration) bool {
	select {
	case <-c.done:
		return true
	case <-time.After(d):
		return false
	}
}

// runsUntil fails the test if the process ends before the deadline.
func (c *process) runsUntil(deadline time.Time) {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(time.Until(deadline)):
	}
	select {
	case <-c.done:
		c.t.Fatalf("%q ended too early (%v)", c.argv, c.cmd.ProcessState)
	default:
	}
}

// kill kills a process, which may have ended. 0 and 1, the parents of those that have, are refused.
func kill(pid int) {
	if pid <= 1 {
		panic(fmt.Sprintf("cannot kill %d: no process of a test", pid))
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		panic(fmt.Sprintf("cannot kill %d: %v", pid, err))
	}
}
