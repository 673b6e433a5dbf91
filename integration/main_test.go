package integration

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rdzv/internal/proctest"
)

var (
	rdzvBin = flag.String("rdzvbin", "", "the rdzv to test; built first if empty")
	self    string // this binary, which is every worker too
	mpirun  string // Open MPI's
	python  string // a python3 that can import torch
	testbed string // the folder of that name
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "worker" {
		os.Exit(work(os.Args[2:]))
	}
	flag.Parse()
	proctest.CatchIgnored()
	if testing.Short() {
		fmt.Println("integration: left out (-short)")
		os.Exit(0)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "built")
	if err != nil {
		return reportError(err)
	}
	defer os.RemoveAll(dir)
	if err := prepare(dir); err != nil {
		return reportError(err)
	}
	return m.Run()
}

func reportError(err error) int {
	fmt.Fprintf(os.Stderr, "integration: %v\n", err)
	return 1
}

// prepare finds what the tests need, and builds rdzv in dir if none is given.
func prepare(dir string) (err error) {
	if self, err = os.Executable(); err != nil {
		return err
	}
	if testbed, err = filepath.Abs("testbed"); err != nil {
		return err
	}
	if mpirun, err = outputOf("../scripts/openmpi"); err != nil {
		return fmt.Errorf("cannot find Open MPI's mpirun: make test installs what is missing")
	}
	if python, err = outputOf("../scripts/python-with-torch"); err != nil {
		return fmt.Errorf("cannot find a python3 that imports torch: make test installs what is missing")
	}
	for _, launcher := range []string{"mpiexec.hydra", "srun"} {
		if _, err := exec.LookPath(launcher); err != nil {
			return fmt.Errorf("cannot find the launcher %q: make test installs what is missing", launcher)
		}
	}
	if *rdzvBin != "" {
		*rdzvBin, err = filepath.Abs(*rdzvBin)
		return err
	}
	*rdzvBin = filepath.Join(dir, "rdzv")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", *rdzvBin, "rdzv/cmd/rdzv") // as make does
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	return build.Run()
}

func outputOf(program string) (string, error) {
	out, err := exec.Command(program).Output()
	return strings.TrimSpace(string(out)), err
}
