package node

import (
	"context"
	"testing"
	"time"
)

func TestLastLine(t *testing.T) {
	for script, want := range map[string][2]string{
		"echo a; echo b":         {"b", ""},
		"true":                   {"", ""},
		"echo a; echo b >&2":     {"b", ""},
		"echo bad disk; exit 3":  {"bad disk", "exit status 3: bad disk"},
		"exit 3":                 {"", "exit status 3"},
		"echo begun; sleep 1000": {"begun", "timed out: begun"},
		"sleep 1000 & echo left": {"left", ""},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		begin := time.Now()
		line, err := LastLine(ctx, nil, "/bin/sh", "-c", script)
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
	}
}
