package integration

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An exitWatch notes when processes end.
type exitWatch struct {
	pidfds map[int]int // by pid: those that have not ended
	ended  map[int]time.Time
}

func watchExits(pids ...[]int) *exitWatch {
	w := &exitWatch{map[int]int{}, map[int]time.Time{}}
	for _, pid := range slices.Concat(pids...) {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			w.pidfds[pid] = fd
		}
	}
	return w
}

// wait waits until all processes have ended, or until the time is over.
func (w *exitWatch) wait(limit time.Duration) {
	deadline := time.Now().Add(limit)
	for time.Now().Before(deadline) {
		var set []unix.PollFd
		var pids []int
		for pid, fd := range w.pidfds {
			set = append(set, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			pids = append(pids, pid)
		}
		if len(set) == 0 {
			return
		}
		_, _ = unix.Poll(set, int(time.Until(deadline).Milliseconds()))
		for i, now := 0, time.Now(); i < len(set); i++ {
			if set[i].Revents != 0 {
				unix.Close(w.pidfds[pids[i]])
				delete(w.pidfds, pids[i])
				w.ended[pids[i]] = now
			}
		}
	}
}

// check fails the test for each process that has not ended, and returns their number.
func (w *exitWatch) check(t *testing.T) int {
	t.Helper()
	for pid := range w.pidfds {
		t.Errorf("process %d is still alive: %q", pid, commandLine(pid))
	}
	return len(w.pidfds)
}

func (w *exitWatch) close() {
	for _, fd := range w.pidfds {
		unix.Close(fd)
	}
}

// lastExit returns the time from a start until the last of some processes ended.
func (w *exitWatch) lastExit(start time.Time, pids []int) (last time.Duration) {
	for pid, at := range w.ended {
		if slices.Contains(pids, pid) {
			last = max(last, at.Sub(start))
		}
	}
	return last
}
