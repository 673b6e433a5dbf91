package integration

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
)

// ignoringSIGTERM is a Python program that ignores SIGTERM. With the argument fail, the last rank
// fails when all have started.
const ignoringSIGTERM = `import os, signal, sys, time
what, directory = sys.argv[1:]
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(os.path.join(directory, os.environ["RANK"]), "w").close()
def busy_here():
    while True:
        time.sleep(0.1)
if what == "fail" and os.environ["RANK"] == "3":
    while len(os.listdir(directory)) < 4:
        time.sleep(0.01)
    sys.exit(5)
busy_here()
`

// A worker that ignores SIGTERM prints its stack before it is killed.
func TestStackOfWorkerThatIgnoresSIGTERM(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	c.jobEnv = []string{lateSIGKILL}
	var scenarios []scenario
	for _, launcher := range jobLaunchers {
		scenarios = append(scenarios, scenario{launcher, func(t *testing.T) {
			program := []string{python, "-c", ignoringSIGTERM, "fail", jobDir}
			j := c.startJob(t, launcher, 2, []string{"--grace", "1s"}, program)
			j.checkCommands(5)
			j.checkStacks("busy_here", workersPerJob-1)
			j.checkAnnounced()
			j.removeLeftovers()
			j.checkAgentCodes(5)
		}})
	}
	for hosts := 1; hosts <= 2; hosts++ {
		scenarios = append(scenarios, scenario{fmt.Sprintf("mpirun_TERM/%d", hosts), func(t *testing.T) {
			c.terminateMpirun(t, hosts)
		}})
	}
	runConcurrently(t, scenarios)
}

// terminateMpirun checks that the stacks are printed before mpirun kills its ranks, which it does
// seconds after its SIGTERM, long before the agents would. Open MPI 5 does it 0.25 s after, which
// is too soon for a busy machine: there the agents get mpirun's SIGTERM from the test.
func (c *cluster) terminateMpirun(t *testing.T, hosts int) {
	program := []string{python, "-c", ignoringSIGTERM, "continue", jobDir}
	j := c.startJob(t, "openmpi", hosts, nil, program)
	allStarted := func() bool {
		started, err := filepath.Glob(filepath.Join(j.records(), "*"))
		return err == nil && len(started) == workersPerJob
	}
	if !eventually(waitLimit, allStarted) {
		t.Fatal("not all ranks have started")
	}
	if openMPI5 {
		for _, agent := range j.agents() {
			j.signal(-parentOf(agent), syscall.SIGTERM)
		}
		j.checkCommands(128 + 15)
	} else {
		j.signal(j.commands[0].pid(), syscall.SIGTERM)
		j.checkCommands(1)
	}
	j.checkStacks("busy_here", workersPerJob)
	j.checkAnnounced()
	j.removeLeftovers()
}
