package wrap

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
)

// guards are the watchdogs of this process. They are its children but no orphans.
var guards = struct {
	sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

// sweepWait is how long a process may take to die of SIGKILL; sweepStep how often that is looked at.
const (
	sweepWait = 3 * time.Second
	sweepStep = time.Millisecond
)

// children returns the children of this process that are no watchdogs. Without /proc none can be found.
func children() (map[int]bool, error) {
	set := map[int]bool{}
	if childless() {
		return set, nil
	}
	guards.Lock()
	defer guards.Unlock()
	pids, err := procfs.Children(procfs.System, os.Getpid())
	for _, pid := range pids {
		if !guards.pids[pid] {
			set[pid] = true
		}
	}
	return set, err
}

// childless reports whether this process has no children at all, as most agents do before they start their watchdog.
func childless() bool {
	return unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil) == unix.ECHILD
}

// sweep kills what this process has adopted from a watchdog that died: all its children but those in spare. As it
// kills its own children only, which nobody else reaps, it never hits a stranger; theirs become its own in turn. ended is
// told every status. The error names those that would not die within sweepWait, or says why they could not be found.
func sweep(spare map[int]bool, ended func(pid int, status syscall.WaitStatus)) error {
	for until := time.Now().Add(sweepWait); ; time.Sleep(sweepStep) {
		left, err := sweepOnce(spare, ended)
		switch {
		case len(left) == 0 && err == nil:
			return nil
		case time.Now().Before(until):
		case err != nil:
			return fmt.Errorf("cannot look for what the workers have left behind: %w", err)
		default:
			return &LeftError{named(left)}
		}
	}
}

// sweepOnce kills and reaps each child once and returns those not in spare that there were.
func sweepOnce(spare map[int]bool, ended func(int, syscall.WaitStatus)) ([]int, error) {
	var left []int
	found, err := children()
	for pid := range found {
		if spare[pid] {
			continue
		}
		left = append(left, pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
		var status syscall.WaitStatus
		if got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil); err == nil && got == pid {
			ended(pid, status)
		}
	}
	return left, err
}

// named adds names to pids.
func named(pids []int) []Process {
	var list []Process
	for _, pid := range pids {
		stat, _ := procfs.Read(procfs.System, pid) // one that has gone meanwhile has no name
		list = append(list, Process{PID: pid, Name: stat.Name})
	}
	return list
}

// leftovers sees to what the watchdog has left, and tells what could not be killed.
func (r *run) leftovers() error {
	switch {
	case !r.gone:
		return r.takeOver()
	case len(r.left) > 0:
		return &LeftError{named(r.left)}
	}
	return nil
}

// takeOver kills the tree of a watchdog that died before it could, and ends the workers of whose end it did not live to tell.
func (r *run) takeOver() error {
	statuses := map[int]syscall.WaitStatus{}
	err := sweep(r.spare, func(pid int, s syscall.WaitStatus) { statuses[pid] = s })
	for i, s := range r.states {
		result := Result{PID: s.pid, Signal: syscall.SIGKILL, Stopped: true, Err: ErrWatchdog}
		if r.aborted {
			result = skipped
		} else if status, ok := statuses[s.pid]; ok {
			result.Signal = 0
			result.fill(status)
			result.Took = time.Since(s.began)
		}
		r.ended(i, result)
	}
	switch {
	case err != nil:
		return errors.Join(ErrWatchdog, err)
	case r.aborted:
		return nil
	}
	return ErrWatchdog
}
