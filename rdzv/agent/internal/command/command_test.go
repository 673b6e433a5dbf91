package command

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLastLine(t *testing.T) {
	for script, want := range map[string][2]string{
		"echo a; echo b":         {"b", ""},
		"true":                   {"", ""},
		"echo a; echo b >&2":     {"b", ""},
		"echo bad disk; exit 3":  {"bad disk", `exit status 3: "bad disk"`},
		"exit 3":                 {"", "exit status 3"},
		"kill -9 $$":             {"", "killed by SIGKILL"},
		"echo begun; sleep 1000": {"begun", `timed out: "begun"`},
		"sleep 1000 & echo left": {"left", ""},
		"setsid sleep 1000 &":    {"", ""},
		"(setsid sh -c 'trap \"\" TERM; sleep 1000 & wait' &); echo begun; sleep 1000": {
			"begun", `timed out: "begun"`},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		begin := time.Now()
		mark := fmt.Sprintf("COMMAND_TEST=%d %s", os.Getpid(), script)
		env := []string{mark, "PATH=" + os.Getenv("PATH")}
		line, err := LastLine(ctx, "", env, "/bin/sh", "-c", script)
		cancel()
		text := ""
		if err != nil {
			text = err.Error()
		}
		if line != want[0] || text != want[1] {
			t.Errorf("%s: %q, %q, want %q", script, line, text, want)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%s: ended after %v, want 1 s", script, took)
		}
		if left := processesWith(mark); len(left) > 0 {
			t.Errorf("%s: %v are left", script, left)
		}
	}
}

// processesWith lists the processes with this variable in their environment.
func processesWith(variable string) (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && bytes.Contains(append([]byte{0}, text...), []byte("\x00"+variable+"\x00")) {
			found = append(found, filepath.Dir(file))
		}
	}
	return found
}
