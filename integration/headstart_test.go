package integration

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// failsWhileLoading is the argument of load for a rank 0 that fails.
const failsWhileLoading = "fails"

// load is the role of a worker whose rank 0 does what the dynamic loader does with the libraries of
// torch, but takes 2 s for it. Then it needs CPU time until the other ranks run. With
// failsWhileLoading it fails instead. A rank that has started at the wrong time notes that.
func load(dir string, args []string) (int, error) {
	note := func(name string) error {
		return os.WriteFile(filepath.Join(args[0], name), nil, 0o600)
	}
	if os.Getenv("RANK") != "0" {
		if !exists(filepath.Join(args[0], "loaded")) {
			if err := note("early"); err != nil {
				return 0, err
			}
		}
		return 0, leaveRecord(dir)
	}
	library, err := mapLibrary(args[0])
	if err != nil {
		return 0, err
	}
	if len(args) > 1 {
		time.Sleep(500 * time.Millisecond) // so that its agent sees the library
		return failCode, nil
	}
	time.Sleep(2 * time.Second)
	if err := note("loaded"); err != nil {
		return 0, err
	}
	if err := unix.Mprotect(library[:os.Getpagesize()], unix.PROT_READ); err != nil {
		return 0, err
	}
	// If the end of this was not noticed, the others would start 10 s after rank 0.
	for end := time.Now().Add(6 * time.Second); !exists(filepath.Join(dir, "1.json")); {
		if time.Now().After(end) {
			return 0, note("late")
		}
	}
	return 0, leaveRecord(dir)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// mapLibrary maps a file with the name of a library of torch into this process.
func mapLibrary(dir string) ([]byte, error) {
	f, err := os.Create(filepath.Join(dir, "libtorch_python.so"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := 2 * os.Getpagesize()
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
}

// loads runs jobs whose rank 0 does what load does, until the other ranks of one have not started at
// the wrong time: rank 0 has only 200 ms to begin, which a busy machine may not grant it.
func (c *cluster) loads(t *testing.T, launcher string, hosts, code int, args ...string) {
	t.Helper()
	for range 5 {
		dir := newPlace(t).root
		program := append([]string{"sh", "-c", `exec "$@"`, "sh"},
			worker("load", jobDir, append([]string{dir}, args...)...)...)
		j := c.startJob(t, launcher, hosts, nil, program)
		j.checkCommands(code)
		j.removeLeftovers()
		early, late := exists(filepath.Join(dir, "early")), exists(filepath.Join(dir, "late"))
		if !early && !late {
			return
		}
		t.Logf("the other ranks have started too early (%t) or too late (%t)", early, late)
	}
	t.Error("the other ranks have always started at the wrong time")
}

// The head start lasts as long as rank 0 loads torch, and not longer, whichever agents the other
// ranks have.
func TestHeadStartWhileLoading(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	forEachJobLauncher(t, func(t *testing.T, launcher string, hosts int) {
		c.loads(t, launcher, hosts, 0)
	})
}

// While the other ranks wait for the end of rank 0's head start, nothing else does: a failure of
// rank 0 ends the job, and they are not started.
func TestHeadStart(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	forEachJobLauncher(t, func(t *testing.T, launcher string, hosts int) {
		c.loads(t, launcher, hosts, failCode, failsWhileLoading)
	})
}
