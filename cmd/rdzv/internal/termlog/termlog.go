// Package termlog writes why a job has ended to the termination log of a container, which
// Kubernetes shows in the pod's status (kubectl describe pod). The kubelet bind-mounts an empty
// file at the container's terminationMessagePath and reads at most 4,096 bytes of it.
//
// Source: kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure.
package termlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"unicode/utf8"

	"rdzv/cmd/rdzv/internal/outfile"
	"rdzv/internal/filelock"
)

// maxLen is the size in bytes to which messages are cut: the kubelet reads no more.
const maxLen = 4096

// Off is the value of RDZV_TERMINATION_LOG with which nothing is written.
const Off = "off"

// defaultPath is that of a container whose pod does not name another one.
const defaultPath = "/dev/termination-log"

// Path returns the termination log of a process with this environment; "" if it has none. mounts is
// the content of /proc/self/mountinfo. given says that RDZV_TERMINATION_LOG names it.
func Path(env map[string]string, mounts []byte) (path string, given bool) {
	switch value := env["RDZV_TERMINATION_LOG"]; {
	case value == Off:
		return "", false
	case value != "":
		return value, true
	case env["KUBERNETES_SERVICE_HOST"] != "" && mounted(mounts, defaultPath):
		return defaultPath, false
	}
	return "", false
}

// mounted tells whether something is mounted at a path. The mount point is the fifth field of a
// line (proc_pid_mountinfo(5)).
func mounted(mounts []byte, path string) bool {
	for line := range bytes.Lines(mounts) {
		if fields := bytes.Fields(line); len(fields) > 4 && string(fields[4]) == path {
			return true
		}
	}
	return false
}

// Write writes a message to a termination log that exists and is empty. If it is not empty an
// earlier command of this container, or another agent in it, has written its own, and Write does
// nothing.
func Write(path, message string) error {
	f, err := filelock.Open(path, 0)
	if err != nil {
		return fmt.Errorf("cannot write the termination log %q: %w", path, outfile.Cause(err))
	}
	defer f.Close()
	if err := f.TryLock(); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil // another agent writes
	}
	info, err := f.Stat()
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = errors.New("not a regular file")
	case err == nil && info.Size() == 0:
		_, err = io.WriteString(f, clip(message))
	}
	if err != nil {
		return fmt.Errorf("cannot write the termination log %q: %w", path, outfile.Cause(err))
	}
	return nil
}

// clip shortens a message to maxLen, at the boundary of a character.
func clip(message string) string {
	message = strings.TrimRight(strings.ToValidUTF8(message, "\uFFFD"), "\n")
	if len(message) <= maxLen {
		return message
	}
	const more = "..."
	end := maxLen - len(more)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + more
}
