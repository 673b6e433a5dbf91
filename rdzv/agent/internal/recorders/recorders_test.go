package recorders

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The FIFOs of the workers are removed, and nothing else in the directory of the logs.
func TestRemoveFIFOs(t *testing.T) {
	dir := t.TempDir()
	s := Prepare(dir, true)
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	dump, pipe := s.Paths()
	if dump != filepath.Join(dir, "nccl_trace_rank_") || pipe != filepath.Join(dir, "flight_recorder_") {
		t.Fatalf("the files begin with %q and %q", dump, pipe)
	}
	for _, rank := range []int{2, 3, 4} {
		s.Note(rank)
	}
	if err := unix.Mkfifo(pipe+"2.pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(pipe+"5.pipe", 0o600); err != nil { // of another agent
		t.Fatal(err)
	}
	if err := os.WriteFile(pipe+"3.pipe", []byte("mine"), 0o600); err != nil { // no FIFO
		t.Fatal(err)
	}
	s.RemoveFIFOs()
	for name, want := range map[string]bool{"2.pipe": false, "3.pipe": true, "5.pipe": true} {
		if _, err := os.Lstat(pipe + name); (err == nil) != want {
			t.Errorf("%s is there: %t", name, err == nil)
		}
	}
}

// Without Python, or where there can be no FIFO, torch gets none.
func TestNoFIFOs(t *testing.T) {
	for dir, python := range map[string]bool{
		t.TempDir(): false, filepath.Join(t.TempDir(), "missing"): true,
	} {
		if dump, pipe := Prepare(dir, python).Paths(); dump == "" || pipe != "" {
			t.Errorf("the files begin with %q and %q", dump, pipe)
		}
	}
	if dump, pipe := (&Set{}).Paths(); dump != "" || pipe != "" {
		t.Errorf("without logs the files begin with %q and %q", dump, pipe)
	}
}
