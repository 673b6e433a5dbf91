package wrap

import (
	"errors"
	"fmt"

	"github.com/hashicorp/go-multierror"

	"rdzv/internal/procfs"
)

// SurvivorError is a process of the tree that did not die of SIGKILL. The error of Run contains one
// for each such process.
type SurvivorError struct{ Process }

func (e *SurvivorError) Error() string {
	return fmt.Sprintf("cannot kill process %d (%s)", e.PID, e.Name)
}

// Process is a process id with the name of the process.
type Process struct {
	PID  int    `json:"pid"`     // process ID of one
	Name string `json:"command"` // its command name; "" if it has ended meanwhile
}

// cannotKill is the error about processes that did not die of SIGKILL.
func cannotKill(list []Process) error {
	all := &multierror.Error{ErrorFormat: oneLineEach}
	for _, p := range list {
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
