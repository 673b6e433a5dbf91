package integration

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// While the other ranks wait for the end of rank 0's head start, nothing else does: a failure of
// rank 0 ends the job.
func TestHeadStart(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	forEachJobLauncher(t, func(t *testing.T, launcher string, hosts int) {
		script := []string{"sh", "-c", `touch "$0/$RANK"; exit 7`, jobDir}
		j := c.startJob(t, launcher, hosts, []string{"--head-start", "1h"}, script)
		j.checkCommands(7)
		started, err := os.ReadDir(j.records())
		if err != nil || len(started) != 1 || started[0].Name() != "0" {
			t.Errorf("%v have started (%v), want only rank 0", started, err)
		}
	})
}

// load is the role of a worker whose rank 0 does what the dynamic loader does with the libraries of
// torch, but takes 2 s for it. Then it needs CPU time until the other ranks run, which fail if they
// have started before.
func load(dir string, args []string) (int, error) {
	loaded := filepath.Join(args[0], "loaded")
	if os.Getenv("RANK") != "0" {
		if _, err := os.Stat(loaded); err != nil {
			return 0, err
		}
		return 0, leaveRecord(dir)
	}
	library, err := mapLibrary(args[0])
	if err != nil {
		return 0, err
	}
	time.Sleep(2 * time.Second)
	if err := os.WriteFile(loaded, nil, 0o600); err != nil {
		return 0, err
	}
	if err := unix.Mprotect(library[:os.Getpagesize()], unix.PROT_READ); err != nil {
		return 0, err
	}
	for end := time.Now().Add(waitLimit); time.Now().Before(end); {
		if _, err := os.Stat(filepath.Join(dir, "1.json")); err == nil {
			return 0, leaveRecord(dir)
		}
	}
	return notStopped, nil
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

// The head start lasts as long as rank 0 loads torch, and not longer, whichever agents the other
// ranks have.
func TestHeadStartWhileLoading(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	forEachJobLauncher(t, func(t *testing.T, launcher string, hosts int) {
		// Rank 0 has 200 ms by default to begin to load, which a busy machine may not grant it.
		for _, limit := range []string{"5s", "1h"} {
			if limit == "1h" && launcher != "openmpi" {
				continue
			}
			flags := []string{"--head-start", limit}
			program := append([]string{"sh", "-c", `exec "$@"`, "sh"},
				worker("load", jobDir, newPlace(t).root)...)
			j := c.startJob(t, launcher, hosts, flags, program)
			j.checkCommands(0)
			j.removeLeftovers()
		}
	})
}
