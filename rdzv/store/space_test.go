package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rdzv/internal/proctest"
)

// fullDir makes the test binary start a store on a small disk, mounted on this directory, fill the
// disk, and put more into the store than fits into the space that it has allocated.
const fullDir = "RDZV_TEST_FULL_DIR"

func fill(dir string) {
	check := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	check(syscall.Mount("none", dir, "tmpfs", 0, "mode=700,size=8m"))
	s, err := Start(context.Background(), Config{Dir: dir, Failed: func(err error) {
		left, _ := filepath.Glob(filepath.Join(dir, dirPattern))
		fmt.Println(err, errors.Is(err, syscall.ENOSPC), left)
		os.Exit(7)
	}})
	check(err)
	f, err := os.Create(filepath.Join(dir, "fill"))
	check(err)
	zeros, err := os.Open("/dev/zero")
	check(err)
	if _, err = io.Copy(f, zeros); !errors.Is(err, syscall.ENOSPC) {
		check(fmt.Errorf("the disk is not full: %w", err))
	}
	few := strings.Repeat("x", segment/16)
	for i := range 8 { // fits into the allocated space
		_, err := s.Client().Put(context.Background(), fmt.Sprint(i), few)
		check(err)
	}
	fmt.Println("half full")
	for i := range 100 {
		_, err := s.Client().Put(context.Background(), fmt.Sprint(i), few)
		check(err)
	}
}

// inMountNamespace returns a command that runs this test binary in a mount namespace of its own.
func inMountNamespace(t *testing.T) *exec.Cmd {
	t.Helper()
	how := "-m"
	if os.Geteuid() != 0 {
		how = "-Urm"
	}
	proctest.NeedUnshare(t, how)
	return exec.CommandContext(within(t), "unshare", how, os.Args[0])
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	c := inMountNamespace(t)
	c.Env = append(os.Environ(), fullDir+"="+dir)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("exit status %v, want 7", err)
	}
	rest, ok := strings.CutPrefix(string(out), "half full\ncannot run the store in \""+dir)
	if !ok || !strings.HasSuffix(rest, ": no space left on device true []\n") {
		t.Errorf("output %q", out)
	}
}

func TestCheckSpace(t *testing.T) {
	if err := checkSpace(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := checkSpace("/no/such/directory"); err != nil {
		t.Errorf("checkSpace of a missing directory: %v, want nil", err)
	}
}

// A store has the space for its database from its start, so that a disk that others fill later does
// not end a job.
func TestSpaceIsAllocated(t *testing.T) {
	parent := t.TempDir()
	defer stop(t, start(t, parent))
	files, err := filepath.Glob(filepath.Join(parent, "*", "member", "snap", "db"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the databases %v, %v", files, err)
	}
	var info syscall.Stat_t
	must(t, syscall.Stat(files[0], &info))
	if got := info.Blocks * 512; got < databaseSpace {
		t.Errorf("the database has %d bytes, want %d", got, databaseSpace)
	}
}
