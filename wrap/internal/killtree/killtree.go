// Package killtree kills processes together with their descendants. On a busy machine it takes long
// until a process that is killed has ended, and its children become those of another one: they are
// killed at the same time. Without pidfds (before Linux 5.3) each generation is killed when the one
// before has ended.
package killtree

import (
	"maps"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
)

// Killer kills children of this process, a child subreaper, and what is below them. It is used for
// seconds: a pid is that of one process.
type Killer struct {
	killed map[int]bool // nothing below these is still to be killed
}

const (
	// passes are how often in succession Kill looks for what was created meanwhile.
	passes = 4
	// mostBelow is how many pidfds a pass opens.
	mostBelow = 256
)

// Kill sends SIGKILL to the children that list returns and to all below them, until it finds none
// that has not received it. What has received it cannot create another process: Kill does not wait
// until it has ended, which takes long on a busy machine. It returns the last list.
//
// The caller must not reap the children meanwhile.
func (k *Killer) Kill(list func() []int) (pids []int) {
	found := map[int]bool{}
	pids = list()
	for n, more := 0, true; more && n < passes; n++ {
		below, before := k.below(pids), len(found)
		if n > 0 { // with what has lost its parent before it was looked for there
			pids = list()
		}
		for _, pid := range pids {
			if _ = syscall.Kill(pid, syscall.SIGKILL); !k.killed[pid] {
				found[pid] = true
			}
		}
		for _, p := range below {
			_ = unix.PidfdSendSignal(p.fd, unix.SIGKILL, nil, 0)
			_ = unix.Close(p.fd)
			found[p.pid] = true
		}
		if more = len(found) > before; !more {
			k.add(found)
		}
	}
	return pids
}

// below are the processes below children that may not have received SIGKILL.
func (k *Killer) below(children []int) (all []process) {
	for _, pid := range children {
		if !k.killed[pid] {
			all = append(all, process{pid, child}.below(mostBelow-len(all))...)
		}
	}
	return all
}

func (k *Killer) add(pids map[int]bool) {
	if k.killed == nil {
		k.killed = map[int]bool{}
	}
	maps.Copy(k.killed, pids)
}

// process is one with a pidfd, which is never that of another process that gets the same pid.
type process struct{ pid, fd int }

// child instead of a pidfd is for a child of this process, whose pid no other process gets.
const child = -1

// exists tells whether the process has the pid, also as a zombie.
func (p process) exists() bool {
	return p.fd == child || unix.PidfdSendSignal(p.fd, 0, nil, 0) != unix.ESRCH
}

// below are the descendants of a process, generation by generation, and no more than most.
func (p process) below(most int) []process {
	all := p.children(most)
	for i := 0; i < len(all) && len(all) < most; i++ {
		all = append(all, all[i].children(most-len(all))...)
	}
	return all
}

// children are those of a process, as far as pidfds can be opened, and no more than most. Some may
// have lost it meanwhile.
func (p process) children(most int) (all []process) {
	pids, _ := procfs.Children(procfs.System, p.pid)
	for _, pid := range pids[:min(len(pids), most)] {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			all = append(all, process{pid, fd})
		}
	}
	exists := p.exists() // otherwise another process may have had its pid, and these children
	return slices.DeleteFunc(all, func(c process) bool {
		if exists && c.isChild(p.pid, os.Getpid()) {
			return false
		}
		_ = unix.Close(c.fd)
		return true
	})
}

// isChild tells whether what has the pid now is a child of one of these, not another process.
func (p process) isChild(of ...int) bool {
	now, err := procfs.Read(procfs.System, p.pid)
	return err == nil && slices.Contains(of, now.Parent)
}
