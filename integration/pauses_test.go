package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// A job continues after all its processes were stopped for longer than the peer timeout, also if
// another attempt is possible, so that its workers may run only until it has passed.
func TestPauses(t *testing.T) {
	c := newJobCluster(t)
	var all []variant
	for i, launcher := range jobLaunchers {
		all = append(all, variant{"", launcher, scenario{launcher, func(t *testing.T) {
			c.pauseJob(t, launcher, 1+i%2)
		}}}, variant{" with restarts", launcher, scenario{launcher + " with restarts", func(t *testing.T) {
			c.pauseJob(t, launcher, 2, "--max-restarts", "1")
		}}})
	}
	runConcurrently(t, selected(all))
}

// pauseTime is longer than a runner lets its agent be stopped alone, with the shortest
// --peer-timeout.
const pauseTime = 5 * time.Second

func (c *cluster) pauseJob(t *testing.T, launcher string, hosts int, more ...string) {
	end := filepath.Join(newPlace(t).root, "end")
	flags := append(more, "--quiet", "--peer-timeout", "3s")
	j := c.runningJob(t, launcher, hosts, flags, worker("until", jobDir, end))
	agents := j.agents()
	j.suspend(agents)
	running := func(pid int) bool { return stateOf(pid) != "T" }
	if !eventually(waitLimit, func() bool { return !slices.ContainsFunc(agents, running) }) {
		t.Error("not all agents are stopped")
	}
	j.runFor(pauseTime)
	j.resume(agents)
	j.runFor(pauseTime) // no agent is considered lost
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j.checkCommands(0)
	if lines := j.commands[0].linesWith("rdzv:"); len(lines) > 0 {
		t.Errorf("rdzv printed %q, want nothing", lines)
	}
	j.removeLeftovers()
}

func (j *job) suspend(agents []int) {
	if j.launcher == "slurm" {
		j.slurmCommand("scontrol", "suspend", j.workers[0].Env["SLURM_JOB_ID"])
		return
	}
	j.signalGroups(agents, syscall.SIGSTOP)
}

func (j *job) resume(agents []int) {
	if j.launcher == "slurm" {
		j.slurmCommand("scontrol", "resume", j.workers[0].Env["SLURM_JOB_ID"])
		return
	}
	j.signalGroups(agents, syscall.SIGCONT)
}

// signalGroups sends a signal to the process groups of agents and to those of their workers.
func (j *job) signalGroups(agents []int, s syscall.Signal) {
	j.t.Helper()
	for _, agent := range agents {
		group, err := syscall.Getpgid(agent)
		if err != nil {
			j.t.Fatalf("agent %d has ended", agent)
		}
		j.signal(-group, s)
	}
	for _, worker := range j.workers {
		j.signal(-worker.PID, s)
	}
}

// runFor fails the test if one of the job's commands ends within the time.
func (j *job) runFor(d time.Duration) {
	j.t.Helper()
	deadline := time.Now().Add(d)
	for _, command := range j.commands {
		command.runsUntil(deadline)
	}
}

// The same with Ctrl-Z and fg on two terminals. No worker ends, and no other attempt begins.
func TestCtrlZ(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	p := c.newPlace(t)
	dir := p.dir("job")
	terminals := make([]*terminal, 2)
	for i := range terminals {
		term := openTerminal(p.place, p.root, bashLine)
		terminals[i] = term
		exec := rdzvExec([]string{"--nodes", "2", "--node-rank", strconv.Itoa(i), "--store", "node1",
			"--max-restarts", "1", "--peer-timeout", "3s", "--job", filepath.Base(p.root)},
			[]string{self, "saver", dir, "none"})
		term.typeKeys(quoted(c.on(i+1, exec...)) + "\n")
	}
	started := func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, "0", "*"))
		return len(files) == len(terminals)
	}
	if !eventually(waitLimit, started) {
		t.Fatal("the workers have not started")
	}
	for _, term := range terminals {
		term.typeAndWait("\x1a", "Stopped")
	}
	time.Sleep(pauseTime)
	for _, term := range terminals {
		term.typeKeys("fg; echo code=$?\n")
	}
	time.Sleep(pauseTime)
	if err := os.WriteFile(filepath.Join(dir, "finish"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, term := range terminals {
		term.waitFor("code=0")
	}
	if _, err := os.Stat(filepath.Join(dir, "1")); err == nil {
		t.Error("there was another attempt")
	}
}
