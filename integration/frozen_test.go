package integration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A frozenCase is a process of a job that receives SIGSTOP and is not continued.
type frozenCase struct {
	name    string
	process func(j *job) int
	fails   bool     // then the last rank exits with failCode
	reasons []string // of which the job reports one
}

const (
	frozenTimeout = 3 * time.Second // --peer-timeout
	frozenGrace   = time.Second
	// frozenLimit is the longest time from the SIGSTOP until the launcher has ended.
	frozenLimit = frozenTimeout + frozenGrace + time.Second
	// busyMargin is for the short form, which runs while other tests use the processors.
	busyMargin = 5 * time.Second
	// mpirunWait is how long mpirun 4 may wait on each host after a task has failed.
	mpirunWait = 2 * time.Second
)

var frozenCases = []frozenCase{
	{"agent or task", func(j *job) int { return j.agentOf(lastRank) }, false,
		[]string{"rdzv: lost "}},
	// On one host it is the only agent under a launcher: its tasks report the loss.
	{"store's agent", (*job).storeHost, false,
		[]string{"which hosted the store", "lost the agent of this node"}},
	// The agent kills the runner; it learns of either worker's end first.
	{"runner", func(j *job) int { return j.runnerOf(lastRank) }, true,
		[]string{"lost the runner", "rank 3 failed first: exit 7"}},
	{"worker", func(j *job) int { return j.workers[0].PID }, true, []string{"rank 3"}},
}

// A job ends, and with it its launcher, although one of its processes is stopped for ever. Nothing
// of it is left when that process continues. TestKillMatrix stops agents too, so the short form
// leaves them out.
func TestAttackFrozenProcess(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	hosts, cases := []int{1}, frozenCases[2:]
	if *attackLong {
		hosts, cases = []int{1, 2}, frozenCases
	}
	var all []variant
	for _, f := range cases {
		for _, n := range hosts {
			for _, launcher := range jobLaunchers {
				name := fmt.Sprintf("%s/%s%d", strings.ReplaceAll(f.name, " ", "_"), launcher, n)
				run := func(t *testing.T) { c.freeze(t, f, launcher, n) }
				of := f.name + strconv.Itoa(n)
				all = append(all, variant{of, launcher, scenario{name, run}})
			}
		}
	}
	runConcurrently(t, selected(all))
}

func (c *cluster) freeze(t *testing.T, f frozenCase, launcher string, hosts int) {
	flags := []string{"--peer-timeout", frozenTimeout.String(), "--grace", frozenGrace.String()}
	j := c.runningJob(t, launcher, hosts, flags, worker("session", jobDir))
	frozen := f.process(j)
	start := time.Now()
	j.signal(frozen, syscall.SIGSTOP)
	if f.fails {
		j.signal(j.workers[lastRank].PID, syscall.SIGUSR1)
	}
	limit := frozenLimit
	if !*attackLong {
		limit += busyMargin
	}
	if launcher == "openmpi" {
		limit += time.Duration(hosts) * mpirunWait
	}
	outcome := j.endWithin(limit)
	took := time.Since(start)
	_ = syscall.Kill(frozen, syscall.SIGCONT) // unless it has been killed
	left := 0
	if !eventually(5*time.Second, func() bool { left = len(j.tree()); return left == 0 }) {
		t.Errorf("%d processes are left after SIGCONT", left)
	}
	reported := func(reason string) bool { return len(j.linesWith(reason)) > 0 }
	if !slices.ContainsFunc(f.reasons, reported) {
		t.Errorf("no line contains one of %q", f.reasons)
	}
	j.removeLeftovers()
	attack := fmt.Sprintf("SIGSTOP to the %s, %s", f.name, launcher)
	attackRow(t, attack, hosts, took, fmt.Sprintf("%s, %d processes left", outcome, left))
}

// endWithin waits for the end of the job's commands and says how they ended.
func (j *job) endWithin(limit time.Duration) string {
	j.t.Helper()
	deadline := time.Now().Add(limit)
	var codes []string
	for _, command := range j.commands {
		if !command.endsWithin(time.Until(deadline)) {
			j.t.Errorf("%s has not ended", command.program())
			codes = append(codes, "not ended")
			continue
		}
		code := command.code()
		if code == 0 {
			j.t.Errorf("%s ended with exit code 0", command.program())
		}
		codes = append(codes, fmt.Sprint(code))
	}
	return "exit " + strings.Join(codes, ", ")
}

// The others lose an agent whose process group is stopped, which under srun is that of all agents
// of the host. Its runner does not kill it, and it ends when it continues.
func TestSuspendedAgent(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	var scenarios []scenario
	for _, launcher := range []string{"direct", "hydra", "slurm"} { // mpirun kills it
		scenarios = append(scenarios, scenario{launcher, func(t *testing.T) {
			flags := []string{"--peer-timeout", frozenTimeout.String()}
			j := c.runningJob(t, launcher, 2, flags, worker("session", jobDir))
			agent, groups := j.agentOf(lastRank), j.groupsOfHost(lastRank)
			others := slices.DeleteFunc(j.agents(), func(pid int) bool {
				of, _ := syscall.Getpgid(pid)
				return slices.Contains(groups, of)
			})
			watch := watchExits(others)
			defer watch.close()
			for _, g := range groups {
				j.signal(-g, syscall.SIGSTOP)
			}
			watch.wait(waitLimit)
			watch.check(t)
			own := watchExits([]int{agent})
			defer own.close()
			own.wait(pauseTime)
			if state := stateOf(agent); state != "T" {
				t.Errorf("the agent is in state %s, want T (stopped)", state)
			}
			for _, g := range slices.Backward(groups) { // the agents end the workers when they continue
				j.signal(-g, syscall.SIGCONT)
			}
			j.checkAgentCodes(123)
			j.removeLeftovers()
		}})
	}
	runConcurrently(t, scenarios)
}

// groupsOfHost are the process groups of the tasks on the host of a rank, followed by those of their
// workers. Without a launcher the agent has all workers of the host.
func (j *job) groupsOfHost(rank int) []int {
	var tasks, workers []int
	for i, w := range j.workers {
		if w.Env["NODE_RANK"] != j.workers[rank].Env["NODE_RANK"] {
			continue
		}
		workers = append(workers, w.PID)
		if group := j.groupOf(i); !slices.Contains(tasks, group) {
			tasks = append(tasks, group)
		}
	}
	return append(tasks, workers...)
}
