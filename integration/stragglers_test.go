package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// One rank succeeds while others hang: after 10 s the others are named, with their hosts, and
// continue.
func TestStragglersAreNamed(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	forEachJobLauncher(t, c.runStragglers)
}

func (c *cluster) runStragglers(t *testing.T, launcher string, hosts int) {
	end := filepath.Join(newPlace(t).root, "end")
	j := c.startJob(t, launcher, hosts, nil, worker("leave", jobDir, end))
	lines := func() []string { return j.linesWith("after rank 0 succeeded") }
	if !eventually(waitLimit, func() bool { return len(lines()) > 0 }) {
		t.Error("no agent has named the stragglers")
	}
	for _, line := range lines() {
		for _, want := range []string{"1 (node1)", "3 (node", "still running 10s after"} {
			if !strings.Contains(line, want) {
				t.Errorf("the agent printed %q, want %q in it", line, want)
			}
		}
	}
	if n := len(lines()); n > 1 {
		t.Errorf("the stragglers were named %d times, want once", n)
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j.checkCommands(0)
	j.removeLeftovers()
}

// hangingProgram is a Python program that hangs, except in rank 0.
const hangingProgram = `import os, time
def stuck_here():
    time.sleep(1000)
if os.environ["RANK"] != "0":
    stuck_here()
`

// --exit-timeout ends the stragglers, which print where they hang.
func TestExitTimeout(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	forEachJobLauncher(t, func(t *testing.T, launcher string, hosts int) {
		flags := []string{"--exit-timeout", "1s"}
		j := c.startJob(t, launcher, hosts, flags, []string{python, "-c", hangingProgram})
		j.checkCommands(122)
		j.checkAgentCodes(122)
		j.checkStacks("stuck_here", workersPerJob-1)
		if len(j.linesWith("still running 1s after rank 0 succeeded")) == 0 {
			t.Error("no agent has printed why the job was ended")
		}
		j.removeLeftovers()
	})
}

// checkAnnounced checks that the line on workers that ignore SIGTERM precedes their stacks.
func (j *job) checkAnnounced() {
	j.t.Helper()
	for _, command := range j.commands {
		lines, _ := command.output()
		before, _, found := strings.Cut(strings.Join(lines, "\n"), "Fatal Python error: Aborted")
		if found && !strings.Contains(before, "SIGTERM; its stacks:") &&
			!strings.Contains(before, "SIGTERM; their stacks:") {
			j.t.Errorf("stacks without a line that announces them")
		}
	}
}

// checkStacks checks how many ranks have printed a stack with this function. It looks for the name
// without parentheses, which only the program has, and for nothing around it: Python writes a stack
// in many pieces, and a line of an agent may come between two of them.
func (j *job) checkStacks(function string, want int) {
	j.t.Helper()
	n := 0
	for _, command := range j.commands {
		lines, _ := command.output()
		output := strings.Join(lines, "\n")
		n += strings.Count(output, function) - strings.Count(output, function+"(")
	}
	if n != want {
		j.t.Errorf("%d ranks have printed their stacks, want %d", n, want)
	}
}
