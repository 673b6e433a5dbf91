package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"rdzv/rdzv/store"
)

// An agent that exits does not remove the runtime directory, in which another job of the same user
// may be about to start its store.
func TestExitingAgentKeepsRuntimeDir(t *testing.T) {
	tmp := t.TempDir()
	dir := filepath.Join(tmp, fmt.Sprintf("rdzv-%d", os.Geteuid()))
	if r := runRdzv(t, []string{"TMPDIR=" + tmp}, "exec", "--", "true"); r.code != 0 {
		t.Fatalf("exit code %d, want 0: %s", r.code, r.stderr)
	}
	s, err := store.Start(t.Context(), store.Config{Dir: dir})
	if err != nil {
		t.Fatalf("cannot start a store after another job has ended: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the runtime directory contains %v, %v; want it empty", left, err)
	}
}
