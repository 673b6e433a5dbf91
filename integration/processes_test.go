package integration

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

var atOnce = flag.Int("at-once", 4, "jobs of the kill matrix that run at a time")

// tree returns the processes of this place, also those without its mark in their environment, as the watchdogs: their
// working directory is the place's.
func (p *place) tree() (pids []int) {
	marked := map[int]bool{}
	for _, pid := range p.alive() {
		marked[pid] = true
	}
	found, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, path := range found {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		dir, err := os.Readlink(path)
		if marked[pid] || err == nil && (dir == p.root || strings.HasPrefix(dir, p.root+"/")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// checkTree is checkClean for processes without a mark.
func (j *job) checkTree() {
	if !eventually(20*time.Second, func() bool { return len(j.tree()) == 0 }) {
		for _, pid := range j.tree() {
			j.t.Errorf("process %d is still alive: %q", pid, commandLine(pid))
			kill(pid)
		}
	}
}

// isRdzv tells whether a process is an agent, a watchdog or a sentinel.
func isRdzv(pid int) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && strings.TrimSuffix(exe, " (deleted)") == *rdzvBin
}

// isWorker tells whether a process is one of the family's or a descendant.
func isWorker(pid int) bool {
	line := commandLine(pid)
	return len(line) > 1 && line[1] == "actor" || line[0] == "sleep"
}

func nameOf(pid int) string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(name))
}

// statOf returns the fields of /proc/PID/stat behind the name, the state first.
func statOf(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	if fields := strings.Fields(rest); len(fields) > 5 {
		return fields
	}
	return []string{"X", "0", "0", "0", "0", "0"}
}

func parentOf(pid int) int { parent, _ := strconv.Atoi(statOf(pid)[1]); return parent }
func groupOf(pid int) int  { group, _ := strconv.Atoi(statOf(pid)[2]); return group }

// A deathbed tells when each of some processes ended.
type exitWatch struct {
	pidfds map[int]int // by pid, those that have not been seen to end
	ended  map[int]time.Time
}

// watchExits begins to watch.
func watchExits(pids ...[]int) *exitWatch {
	d := &exitWatch{map[int]int{}, map[int]time.Time{}}
	for _, pid := range slices.Concat(pids...) {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			d.pidfds[pid] = fd
		}
	}
	return d
}

// wait waits until all but some have ended, at most so long.
func (d *exitWatch) wait(limit time.Duration, but []int) {
	deadline := time.Now().Add(limit)
	for time.Now().Before(deadline) {
		var set []unix.PollFd
		var pids []int
		for pid, fd := range d.pidfds {
			if slices.Contains(but, pid) {
				continue
			}
			set, pids = append(set, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}), append(pids, pid)
		}
		if len(set) == 0 {
			return
		}
		_, _ = unix.Poll(set, int(time.Until(deadline).Milliseconds()))
		for i, now := 0, time.Now(); i < len(set); i++ {
			if set[i].Revents != 0 {
				unix.Close(d.pidfds[pids[i]])
				delete(d.pidfds, pids[i])
				d.ended[pids[i]] = now
			}
		}
	}
}

func (d *exitWatch) close() {
	for _, fd := range d.pidfds {
		unix.Close(fd)
	}
}

// last is how long after since the last of those ended that are of a kind.
func (d *exitWatch) last(since time.Time, is map[int]bool) (last time.Duration) {
	for pid, at := range d.ended {
		if is[pid] {
			last = max(last, at.Sub(since))
		}
	}
	return last
}

// listens tells whether a process has a listening TCP socket.
func listens(pid int) bool { return sockets(pid, "0A") > 0 }

// connections counts the TCP connections of a process.
func connections(pid int) int { return sockets(pid, "01") }

// sockets counts a process's TCP sockets in a state of the kernel's table.
func sockets(pid int, state string) (n int) {
	own := map[string]bool{}
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil {
			own[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		for line := range strings.Lines(string(text)) {
			const stateAt, inodeAt = 3, 9
			if fields := strings.Fields(line); len(fields) > inodeAt && fields[stateAt] == state && own[fields[inodeAt]] {
				n++
			}
		}
	}
	return n
}
