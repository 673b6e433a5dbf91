package wrap

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"rdzv/wrap/internal/parent"
)

// TaskRunner is a runner that this process, a task, has started for another process, its agent.
type TaskRunner struct {
	process *parent.Runner
	agent   *os.File // for the agent
	own     int      // the other end, so that the agent reads its end when nothing of the tree is left
	task    int      // to the runner, which ends when it is closed
}

// StartTaskRunner starts a runner for another process, which gets Socket for NewRunner. If this
// process ends, so does the runner.
func StartTaskRunner() (*TaskRunner, error) {
	agent, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	task, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		unix.Close(agent[0])
		unix.Close(agent[1])
		return nil, os.NewSyscallError("socketpair", err)
	}
	defer unix.Close(task[1])
	t := &TaskRunner{nil, os.NewFile(uintptr(agent[0]), "runner"), agent[1], task[0]}
	if t.process, err = parent.Start(agent[1], task[1]); err != nil {
		t.Close()
		return nil, err
	}
	t.process.BeginTree() // the agent knows when there is one
	return t, nil
}

// PID is that of the runner.
func (t *TaskRunner) PID() int { return t.process.PID }

// Socket is for the agent. This process is to close it when the agent has it.
func (t *TaskRunner) Socket() *os.File { return t.agent }

// Ended is closed when the runner has ended and nothing of its tree is left.
func (t *TaskRunner) Ended() <-chan struct{} { return t.process.Done }

// Close closes what this process has of a runner that has ended.
func (t *TaskRunner) Close() {
	_ = t.agent.Close()
	_ = unix.Close(t.own)
	_ = unix.Close(t.task)
}

// TaskSignals are the signals to a task of which its agent is to know.
var TaskSignals = append(append([]syscall.Signal(nil), endSignals...),
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH)

// Catch passes those of sigs to c that were not ignored when this process started.
func Catch(c chan<- os.Signal, sigs ...syscall.Signal) { catch(c, sigs) }
