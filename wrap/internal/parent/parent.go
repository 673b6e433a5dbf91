// Package parent is what a process does with the runner that it starts: it executes it, ends it if
// it is stopped for too long, and kills what a runner that has died has left. See package wrap
// about runners.
package parent

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
	"rdzv/wrap/internal/killtree"
	"rdzv/wrap/internal/waitid"
)

// Name is argv[0] of a runner, and its name as ps shows it. It does not contain that of the
// program: "pkill rdzv" does not find runners.
const Name = "tree-runner"

// Runner is a runner of this process.
type Runner struct {
	PID  int
	Done <-chan struct{} // closed when it has ended, and nothing of its tree is left

	mu        sync.Mutex
	unrelated map[int]bool // children that this process had before the tree; nil if there is none
	killer    killtree.Killer

	// The following are set when Done is closed.
	Died     bool                       // it has not ended by itself
	Statuses map[int]syscall.WaitStatus // of the processes that it has left, by pid
	Left     []int                      // those that did not die
	Err      error                      // why they could not be listed
}

// runners are the pids of the runners of this process: children of it that are no orphans.
var runners = struct {
	sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

// Start executes this program as a runner. It gets the sockets, in this order, and the descriptors
// without close-on-exec, under their own numbers; its streams are /dev/null. From the first call on
// this process is a child subreaper (prctl(2)): it adopts its orphaned descendants.
func Start(sockets ...int) (*Runner, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, subreaperError(err)
	}
	runners.Lock()
	defer runners.Unlock()
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGCHLD)
	pid, err := execute(sockets)
	if err != nil {
		signal.Stop(changes)
		return nil, fmt.Errorf("cannot start the runner: %w", err)
	}
	runners.pids[pid] = true
	done := make(chan struct{})
	r := &Runner{PID: pid, Done: done}
	go r.watch(changes, done)
	return r, nil
}

// BeginTree is called before the runner starts workers: children that this process has now are none
// of its tree.
func (r *Runner) BeginTree() {
	runners.Lock()
	defer runners.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unrelated = childrenExcept(runners.pids)
}

// EndTree is called when nothing of the tree is left: if the runner dies later, it has left
// nothing.
func (r *Runner) EndTree() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unrelated = nil
}

func (r *Runner) hasTree() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unrelated != nil
}

// Kill kills the runner, and thereby its workers.
func (r *Runner) Kill() {
	select {
	case <-r.Done:
	default:
		_ = syscall.Kill(r.PID, syscall.SIGKILL)
	}
}

func subreaperError(err error) error {
	const text = "cannot become a child subreaper: prctl(PR_SET_CHILD_SUBREAPER): %w"
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf(text+": Linux has it since 3.4, qemu-user 7.2 does not", err)
	}
	return fmt.Errorf(text, err)
}

// watch waits for the end of the runner. SIGCHLD wakes it: while a goroutine waits in waitid(2) Go
// looks ten times per second whether it can use its processor.
//
// What the runner has left is killed before it is reaped: that takes Linux tens of milliseconds if
// a process that reads files of the runner in /proc has to wait for a processor.
func (r *Runner) watch(changes chan os.Signal, done chan<- struct{}) {
	end := r.look()
	for ; end == 0; end = r.look() {
		<-changes
	}
	if end != waitid.Exited && r.hasTree() {
		_, _ = r.kill()
	}
	status := r.reap()
	if r.Died = !status.Exited() || status.ExitStatus() != 0; r.Died && r.hasTree() {
		r.sweep()
	}
	close(done)
	signal.Stop(changes)
}

func (r *Runner) reap() (status syscall.WaitStatus) {
	runners.Lock()
	defer runners.Unlock()
	_, _ = syscall.Wait4(r.PID, &status, 0, nil) // if it was reaped elsewhere, status is 0
	delete(runners.pids, r.PID)
	return status
}

// maxStopped is how long a runner may be stopped while this process runs, and stopStep is how often
// that is checked. A step counts as stopStep, also if this process was stopped meanwhile.
const (
	maxStopped = 2 * time.Second
	stopStep   = 100 * time.Millisecond
)

// look tells how the runner has ended, 0 if it has not. It kills the runner if it is stopped for
// maxStopped.
func (r *Runner) look() (end int32) {
	for {
		if end = r.event(unix.WEXITED | unix.WNOWAIT); end != 0 {
			return end
		}
		if r.event(unix.WSTOPPED) == 0 {
			return 0
		}
		r.endStopped()
	}
}

// event is what has happened to the runner, as a code of waitid(2), 0 if it is none of these.
func (r *Runner) event(events int) (code int32) {
	change, err := waitid.Of(r.PID, events)
	if err != nil { // it was reaped elsewhere
		return waitid.Exited
	}
	return change.Code
}

// endStopped kills the runner unless it is continued.
func (r *Runner) endStopped() {
	for waited := time.Duration(0); procfs.IsStopped(procfs.System, r.PID); waited += stopStep {
		if waited >= maxStopped {
			_ = syscall.Kill(r.PID, syscall.SIGKILL)
			return
		}
		time.Sleep(stopStep)
	}
}

// settings are those of Go in a runner, which counts the first of two: it decides itself when
// garbage is collected, and how many processors it uses. What packages initialise takes least
// memory with one.
var settings = []string{"GOGC=off", "GOMAXPROCS=1"}

// execute executes this program, and returns its pid.
func execute(sockets []int) (pid int, err error) {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("open /dev/null", err)
	}
	defer unix.Close(null)
	files, args := []uintptr{uintptr(null), uintptr(null), uintptr(null)}, []string{Name}
	for len(sockets) > 0 {
		fd := len(files)
		if isInherited(fd) {
			files = append(files, uintptr(fd))
			continue
		}
		args = append(args, strconv.Itoa(fd))
		files = append(files, uintptr(sockets[0]))
		sockets = sockets[1:]
	}
	return syscall.ForkExec("/proc/self/exe", args, &syscall.ProcAttr{
		Env: slices.Concat(settings, os.Environ()), Files: files,
		// If this pid namespace has no number for the group of this process, nothing can be put into it
		// again.
		Sys: &syscall.SysProcAttr{Setpgid: unix.Getpgrp() != 0},
	})
}

// isInherited tells whether a descriptor is one that an executed program gets.
func isInherited(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}
