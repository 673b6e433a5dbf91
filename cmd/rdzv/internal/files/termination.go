package files

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/visible"
	"rdzv/envmap"
	"rdzv/internal/filelock"
	"rdzv/rdzv/agent"
)

// Termination writes why a command ends to the termination log of its container, which Kubernetes
// shows in the pod's status (kubectl describe pod). The kubelet bind-mounts an empty file at the
// container's terminationMessagePath and reads at most 4,096 bytes of it.
//
// Source: kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure.
type Termination struct {
	Env     envmap.Env
	Console *console.Console
	Limit   *Limit
}

// By writes the error of an agent that was never a member of a job; nothing without a message.
func (t Termination) By(err error, code int, message string) {
	t.write(code, message, agent.Hint(err))
}

// With writes the end of a job.
func (t Termination) With(end agent.Result, code int) {
	message := end.Ended.String()
	if end.Withdrawn {
		message = end.Ended.Left()
	}
	t.write(code, message, "")
}

func (t Termination) write(code int, message, hint string) {
	path, given := terminationLog(t.Env)
	if code == 0 || message == "" || path == "" {
		return
	}
	if hint != "" {
		message = strings.TrimRight(message, "\n") + "\nhint: " + hint
	}
	err := t.Limit.Do(Timeout, func() error { return writeOnce(path, visible.Text(message)) })
	if err != nil {
		err = fmt.Errorf("cannot write the termination log %q: %w", path, err)
	}
	switch {
	case err != nil && given:
		t.Console.Warn("%v", err)
	case err != nil && !errors.Is(err, fs.ErrNotExist): // the pod may have another path for it
		t.Console.Verbose("%v", err)
	}
}

// terminationLog is the path of the termination log; "" is none. given says that the user has named
// it. Without that it is the path of containers whose pod does not name another one.
func terminationLog(env envmap.Env) (path string, given bool) {
	switch path = env["RDZV_TERMINATION_LOG"]; {
	case path == "off":
		return "", false
	case path == "" && env["KUBERNETES_SERVICE_HOST"] != "":
		return "/dev/termination-log", false
	}
	return path, path != ""
}

// writeOnce writes a message to a file that exists and is empty. If it is not empty, an earlier
// command of this container, or another agent in it, has written its own, which stays.
func writeOnce(path, message string) error {
	t, err := resolve(path)
	if err != nil {
		return err
	}
	f, err := filelock.Open(t.path, 0)
	if err != nil {
		return Cause(err)
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
		_, err = f.WriteString(clip(message))
	}
	return Cause(err)
}

// maxLen is the size in bytes to which messages are cut: the kubelet reads no more.
const maxLen = 4096

// clip shortens a message to maxLen, at the boundary of a character.
func clip(message string) string {
	const more = "..."
	message = strings.ToValidUTF8(strings.TrimRight(message, "\n"), "\uFFFD")
	if len(message) > maxLen {
		message = strings.ToValidUTF8(message[:maxLen-len(more)], "") + more
	}
	return message
}
