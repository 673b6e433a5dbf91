package wrap

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/go-multierror"
	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
)

const (
	// sweepWait is how long processes may take to die of SIGKILL.
	sweepWait = 3 * time.Second
	// sweepInterval is how often sweep checks whether they have.
	sweepInterval = time.Millisecond
)

// children returns the children of this process except its holders.
func children() (map[int]bool, error) {
	set := map[int]bool{}
	const options = unix.WEXITED | unix.WNOHANG | unix.WNOWAIT | unix.WALL
	if unix.Waitid(unix.P_ALL, 0, nil, options, nil) == unix.ECHILD {
		return set, nil // as in most agents before they start their holder: no need to read /proc
	}
	holders.Lock()
	defer holders.Unlock()
	pids, err := procfs.Children(procfs.System, os.Getpid())
	for _, pid := range pids {
		if !holders.pids[pid] {
			set[pid] = true
		}
	}
	return set, err
}

// sweep kills the processes that this process has adopted from a holder that died: all its
// children except those in unrelated. It kills only its own children, which nothing else reaps, so
// their pids cannot belong to other processes; their children become its own when they die. sweep
// calls ended with the status of each. The error names those that did not die within sweepWait, or
// says why the children could not be listed.
func sweep(unrelated map[int]bool, ended func(pid int, status syscall.WaitStatus)) error {
	for until := time.Now().Add(sweepWait); ; time.Sleep(sweepInterval) {
		left, err := children()
		maps.DeleteFunc(left, func(pid int, _ bool) bool { return unrelated[pid] })
		for pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			var status syscall.WaitStatus
			if got, _ := syscall.Wait4(pid, &status, syscall.WNOHANG, nil); got == pid {
				ended(pid, status)
			}
		}
		switch {
		case len(left) == 0 && err == nil:
			return nil
		case time.Now().Before(until):
		case err != nil:
			return fmt.Errorf("cannot list the processes that the workers left: %w", err)
		default:
			return cannotKill(slices.Sorted(maps.Keys(left)))
		}
	}
}

// cannotKill is the error about processes that did not die of SIGKILL.
func cannotKill(pids []int) error {
	all := &multierror.Error{ErrorFormat: oneLineEach}
	for _, p := range named(pids) {
		all = multierror.Append(all, &SurvivorError{p})
	}
	return all
}

// oneLineEach formats several errors.
func oneLineEach(errs []error) string { return errors.Join(errs...).Error() }

// named adds names to pids.
func named(pids []int) []Process {
	var list []Process
	for _, pid := range pids {
		stat, _ := procfs.Read(procfs.System, pid) // a process that has ended has no name
		list = append(list, Process{PID: pid, Name: stat.Name})
	}
	return list
}

// killLeft returns the error of Run. It kills the tree of a holder that died before it had, and
// records the end of the workers that the holder has not reported.
func (r *run) killLeft() error {
	if r.finished {
		for i := range r.states { // the holder has ended by itself before it was to start them
			r.ended(i, notStarted)
		}
		if len(r.survivors) > 0 {
			return cannotKill(r.survivors)
		}
		return nil
	}
	statuses := map[int]syscall.WaitStatus{}
	err := sweep(r.unrelated, func(pid int, s syscall.WaitStatus) { statuses[pid] = s })
	for i, s := range r.states {
		result := Result{PID: s.pid, Signal: syscall.SIGKILL, Stopped: true, Err: ErrHolder}
		if status, ok := statuses[s.pid]; ok {
			result.Signal = 0
			result.setStatus(status)
			result.Took = time.Since(s.startedAt)
		}
		r.ended(i, result)
	}
	if err != nil {
		return multierror.Append(&multierror.Error{ErrorFormat: oneLineEach}, ErrHolder, err)
	}
	return ErrHolder
}
