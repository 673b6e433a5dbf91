package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"rdzv/rdzv/store"
)

// An agent that exits leaves the runtime directory to the user's other jobs, one
// of which may be about to start its store there.
func TestExitingAgentKeepsRuntimeDir(t *testing.T) {
	tmp := t.TempDir()
	dir := filepath.Join(tmp, fmt.Sprintf("rdzv-%d", os.Geteuid()))
	if _, stderr, code := called(t, []string{"TMPDIR=" + tmp}, "exec", "--", "true"); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	s, err := store.Start(t.Context(), store.Config{Dir: dir})
	if err != nil {
		t.Fatalf("after another job has ended: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left in the runtime directory: %v, %v", left, err)
	}
}
