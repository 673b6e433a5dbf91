package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// One rank leaves well while others hang: after 10 s they are named, with their hosts, and nothing else happens.
func TestStragglersAreNamed(t *testing.T) {
	f := newField(t)
	var scenarios []scenario
	for i, launcher := range jobLaunchers {
		scenarios = append(scenarios, scenario{launcher, func(t *testing.T) { f.runStragglers(t, launcher, 1+i%2) }})
	}
	runConcurrently(t, scenarios)
}

func (f *field) runStragglers(t *testing.T, launcher string, hosts int) {
	end := filepath.Join(newPlace(t).root, "end")
	j := f.startJob(t, launcher, hosts, nil, actor("leave", end, ""))
	if !eventually(waitLimit, func() bool { return len(j.linesWith("after rank 0 succeeded")) > 0 }) {
		t.Error("nobody has named the stragglers")
	}
	for _, line := range j.linesWith("after rank 0 succeeded") {
		for _, want := range []string{"1 (node1)", "3 (node", "still running 10s after"} {
			if !strings.Contains(line, want) {
				t.Errorf("%q does not say %q", line, want)
			}
		}
	}
	if n := len(j.linesWith("after rank 0 succeeded")); n > 1 {
		t.Errorf("they were named %d times", n)
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range j.commands {
		if code := command.code(); code != 0 {
			t.Errorf("the launcher ended with %d", code)
		}
	}
	j.removeLeftovers()
}

// hanging is a Python program whose rank 0 leaves.
const hanging = `import os, time
def stuck_here():
    time.sleep(1000)
if os.environ["RANK"] != "0":
    stuck_here()
`

// --exit-timeout ends the stragglers, who say where they hang.
func TestExitTimeout(t *testing.T) {
	f := newField(t)
	var scenarios []scenario
	for i, launcher := range jobLaunchers {
		scenarios = append(scenarios, scenario{launcher, func(t *testing.T) {
			j := f.startJob(t, launcher, 1+i%2, []string{"--exit-timeout", "1s"}, []string{python, "-c", hanging})
			for _, command := range j.commands {
				if code := command.code(); code != 122 {
					t.Errorf("the launcher ended with %d, want 122", code)
				}
			}
			j.checkAgentCodes(122)
			if n := len(j.linesWith("in stuck_here")); n != workersPerJob-1 {
				t.Errorf("%d ranks have shown where they hang, want %d", n, workersPerJob-1)
			}
			if len(j.linesWith("still running 1s after rank 0 succeeded")) == 0 {
				t.Error("nobody has said why the job was ended")
			}
			j.removeLeftovers()
		}})
	}
	runConcurrently(t, scenarios)
}

// ignoringSIGTERM is a Python program that ignores SIGTERM, but for its last rank, which fails when all are there if it is told to.
const ignoringSIGTERM = `import os, signal, sys, time
what, here = sys.argv[1:]
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(os.path.join(here, os.environ["RANK"]), "w").close()
def busy_here():
    while True:
        time.sleep(0.1)
if what == "fail" and os.environ["RANK"] == "3":
    while len(os.listdir(here)) < 4:
        time.sleep(0.01)
    sys.exit(5)
busy_here()
`

// A worker that ignores SIGTERM shows its stack before it is killed.
func TestStackOfWorkerThatIgnoresSIGTERM(t *testing.T) {
	f := newField(t)
	f.env = []string{lateSIGKILL}
	var scenarios []scenario
	for _, launcher := range jobLaunchers {
		scenarios = append(scenarios, scenario{launcher, func(t *testing.T) {
			j := f.startJob(t, launcher, 2, []string{"--grace", "1s"}, []string{python, "-c", ignoringSIGTERM, "fail", ""})
			j.checkStacks(5, workersPerJob-1)
			j.checkAgentCodes(5)
		}})
	}
	for hosts := 1; hosts <= 2; hosts++ {
		scenarios = append(scenarios, scenario{fmt.Sprintf("mpirun_TERM/%d", hosts), func(t *testing.T) { f.terminateMpirun(t, hosts) }})
	}
	runConcurrently(t, scenarios)
}

// mpirun kills its ranks seconds after its SIGTERM, long before rdzv would: the stacks come before that.
func (f *field) terminateMpirun(t *testing.T, hosts int) {
	j := f.startJob(t, "openmpi", hosts, nil, []string{python, "-c", ignoringSIGTERM, "stay", ""})
	if !eventually(waitLimit, func() bool {
		there, err := os.ReadDir(filepath.Join(j.root, "job"))
		return err == nil && len(there) == workersPerJob
	}) {
		t.Fatal("not all ranks are there")
	}
	toLauncher(syscall.SIGTERM)(j)
	j.checkStacks(1, workersPerJob)
}

// checkStacks waits for the end of a job of which so many workers show their stack.
func (j *job) checkStacks(code, stacks int) {
	j.t.Helper()
	for _, command := range j.commands {
		if got := command.code(); got != code {
			j.t.Errorf("the launcher ended with %d, want %d", got, code)
		}
	}
	if n := len(j.linesWith("in busy_here")); n != stacks {
		j.t.Errorf("%d ranks have shown their stack, want %d", n, stacks)
	}
	j.removeLeftovers()
}
