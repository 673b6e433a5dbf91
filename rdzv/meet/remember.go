package meet

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// PMI can be used once in a task: the first agent's finalize closes it. So what that one has learnt is remembered for those who come after
// it in the same task, in a file named after the launcher's proxy on this host, and for as long as that lives.
const rememberedPrefix = "pmi-"

// remembered plans with what an earlier agent has learnt; nil if there is nothing.
//
// The file is there only after the barrier, so when all tasks have had their first agent: whoever finds it is not the first.
func (s *session) remembered() (*plan, error) {
	file, ok := s.memory()
	if !ok {
		return nil, nil
	}
	s.forgetDead()
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil
	}
	key, addrs, _, err := parseContact(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("cannot use %q: %w", file, err)
	}
	p, err := s.planContact(key)
	if err != nil {
		return nil, err
	}
	p.sources = []source{fixed("rank 0's host", 0, addrs, p.ports)}
	return p, nil
}

// remember writes what this agent has learnt, unless another on this host has. Without it, a second rdzv exec of this task cannot meet the
// others, and will say so; that is no reason for this one to fail.
func (s *session) remember(key Key, addrs []netip.Addr) {
	file, ok := s.memory()
	if !ok {
		return
	}
	f, err := os.CreateTemp(s.RuntimeDir, ".pmi-*") // 0600
	if err != nil {
		return
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(formatContact(key, addrs, 0) + "\n")
	if closed := f.Close(); err == nil && closed == nil {
		os.Link(f.Name(), file)
	}
}

// memory is the file's name: after the process at the other end of the descriptor, and when that started.
func (s *session) memory() (file string, ok bool) {
	fd, err := strconv.Atoi(s.env("PMI_FD"))
	if err != nil || s.RuntimeDir == "" || s.Proc == nil {
		return "", false
	}
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || peer.Pid <= 0 {
		return "", false
	}
	p, err := readProcess(s.Proc, int(peer.Pid))
	if err != nil {
		return "", false
	}
	return filepath.Join(s.RuntimeDir, fmt.Sprintf("%s%d-%d", rememberedPrefix, p.pid, p.start)), true
}

// forgetDead removes what was remembered under launchers that are gone.
func (s *session) forgetDead() {
	files, _ := filepath.Glob(filepath.Join(s.RuntimeDir, rememberedPrefix+"*"))
	for _, file := range files {
		var pid int
		var start uint64
		if _, err := fmt.Sscanf(filepath.Base(file), rememberedPrefix+"%d-%d", &pid, &start); err != nil {
			continue
		}
		if p, err := readProcess(s.Proc, pid); err != nil || p.start != start {
			os.Remove(file)
		}
	}
}
