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
	rdzvBin = flag.String("rdzvbin", "", "the rdzv to test; it is built first if this is empty")
	self    string // this binary, which contains the worker programs
	mpirun  string // Open MPI's
	python  string // a python3 that can import torch
	testbed string // the path of the directory testbed

	openMPI5 bool // mpirun is that of version 5 or newer, which runs prterun
)

// programs are what this binary does instead of running tests if its first argument is their name.
// They get the other arguments and return the exit code.
var programs = map[string]func(args []string) int{
	"worker":   runWorker,
	"peer":     runPeer,
	"attack":   runAttack,
	"beacons":  runBeacons,
	"garbage":  runGarbage,
	"halfopen": runHalfOpen,
	"member":   runMember,
	"trainer":  runTrainer,
	"saver":    runSaver,
	"beat":     runBeat,
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if program, found := programs[os.Args[1]]; found {
			os.Exit(program(os.Args[2:]))
		}
	}
	flag.Parse()
	proctest.CatchIgnored()
	if testing.Short() {
		fmt.Println("integration: skipped (-short)")
		os.Exit(0)
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	var err error
	if builtDir, err = os.MkdirTemp("", "built"); err == nil {
		defer os.RemoveAll(builtDir)
		err = prepare()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "integration: %v\n", err)
		return 1
	}
	return m.Run()
}

// prepare finds what the tests need, and builds rdzv if no path of it is given.
func prepare() (err error) {
	if self, err = os.Executable(); err != nil {
		return err
	}
	if testbed, err = filepath.Abs("testbed"); err != nil {
		return err
	}
	if mpirun, err = outputOf("../scripts/openmpi"); err != nil {
		return fmt.Errorf("cannot find Open MPI's mpirun: make test installs what is missing")
	}
	_, notFound := exec.LookPath("prterun")
	openMPI5 = notFound == nil
	if python, err = outputOf("../scripts/python-with-torch"); err != nil {
		return fmt.Errorf("cannot find a python3 that imports torch: make test installs what is " +
			"missing")
	}
	for _, launcher := range []string{"mpiexec.hydra", "srun"} {
		if _, err := exec.LookPath(launcher); err != nil {
			return fmt.Errorf("cannot find the launcher %q: make test installs what is missing",
				launcher)
		}
	}
	if err := checkHosts(); err != nil {
		return err
	}
	if *rdzvBin != "" {
		*rdzvBin, err = filepath.Abs(*rdzvBin)
		return err
	}
	*rdzvBin = filepath.Join(builtDir, "rdzv")
	return build(*rdzvBin, "../cmd/rdzv")
}

func outputOf(program string, args ...string) (string, error) {
	out, err := exec.Command(program, args...).Output()
	return strings.TrimSpace(string(out)), err
}
