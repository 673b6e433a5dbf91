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

// A killCase is an event that ends a job.
type killCase struct {
	name      string
	hosts     []int    // numbers of hosts of the job; nil is one, and two
	launchers []string // nil is all
	kill      func(j *job)
	codes     []int // each surviving agent has the same one of these
	// resumes is a launcher that continues the agent when it stops the job, because another agent has
	// lost the store: an agent that has not learns of SIGTERM.
	resumes string
}

var killCases = []killCase{
	{name: "worker exits 7", codes: []int{failCode},
		kill: func(j *job) { j.signal(j.workers[lastRank].PID, syscall.SIGUSR1) }},
	{name: "worker SIGKILL", codes: []int{128 + 9},
		kill: func(j *job) { j.signal(j.workers[lastRank].PID, syscall.SIGKILL) }},
	{name: "agent", codes: []int{123},
		kill: func(j *job) { j.signal(j.lastAgent(), syscall.SIGKILL) }},
	{name: "store's agent", codes: []int{123},
		kill: func(j *job) { j.signal(j.storeHost(), syscall.SIGKILL) }},
	{name: "task", codes: []int{123}, launchers: jobLaunchers[1:],
		kill: func(j *job) { j.signal(j.lastTask(), syscall.SIGKILL) }},
	{name: "agent and task", codes: []int{123}, launchers: jobLaunchers[1:],
		kill: func(j *job) {
			task := j.lastTask()
			j.signalled[task] = syscall.SIGKILL
			j.signal(j.lastAgent(), syscall.SIGKILL)
			_ = trySignal(task, syscall.SIGKILL) // Hydra may have killed it
		}},
	{name: "runner", codes: []int{123},
		kill: func(j *job) { j.signal(j.runnerBelow(j.lastAgent()), syscall.SIGKILL) }},
	{name: "task's runner", codes: []int{123}, launchers: jobLaunchers[1:],
		kill: func(j *job) { j.signal(j.runnerBelow(j.lastTask()), syscall.SIGKILL) }},
	{name: "process group", codes: []int{123},
		kill: func(j *job) { j.signal(-j.groupOf(lastRank), syscall.SIGKILL) }},
	{name: "agent SIGSTOP", codes: []int{123},
		kill: func(j *job) { j.signal(j.lastAgent(), syscall.SIGSTOP) }},
	{name: "task SIGSTOP", codes: []int{123}, launchers: jobLaunchers[1:],
		kill: func(j *job) { j.signal(j.lastTask(), syscall.SIGSTOP) }},
	{name: "store SIGSTOP", codes: []int{123}, resumes: "openmpi",
		kill: func(j *job) { j.signal(j.storeHost(), syscall.SIGSTOP) }},
	{name: "launcher", codes: []int{123}, launchers: jobLaunchers[1:], kill: (*job).killLauncher},
	// An mpirun that loses its daemon sends SIGTERM to the ranks of its own host at once, which may
	// arrive before the leader notices the loss.
	{name: "daemon", codes: []int{123, 128 + 15}, launchers: jobLaunchers[1:], hosts: []int{2},
		kill: func(j *job) {
			daemon := j.daemonOf(lastRank, "orted", "prted", "hydra_pmi_proxy", "slurmstepd")
			j.signal(daemon, syscall.SIGKILL)
		}},
}

// lastAgent is the agent of the last two ranks, or of all of them.
func (j *job) lastAgent() int {
	if agent, _ := j.lastNode(); isAgent(agent) {
		return agent
	}
	return j.storeHost() // the only one
}

// runnerBelow is the runner of an agent or a task.
func (j *job) runnerBelow(pid int) int {
	j.t.Helper()
	for _, w := range j.workers {
		if runner := parentOf(w.PID); parentOf(runner) == pid {
			return runner
		}
	}
	j.t.Fatalf("process %d has no runner", pid)
	return 0
}

// groupOf is the process group of a rank's agent.
func (j *job) groupOf(rank int) int {
	j.t.Helper()
	agent := j.agentOf(rank)
	group, err := syscall.Getpgid(agent)
	if agent == 0 || err != nil {
		j.t.Fatalf("the agent of rank %d has ended (%v)", rank, err)
	}
	return group
}

func (j *job) killLauncher() {
	j.orphaned = true
	j.signal(j.commands[0].pid(), syscall.SIGKILL)
}

// Whatever is killed: all processes of the job end at once, on all hosts, and the surviving agents
// exit with the job's code.
func TestKillMatrix(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	var table killTable
	var all []variant
	for _, hosts := range []int{1, 2} {
		for _, k := range killCases {
			for _, launcher := range jobLaunchers {
				if k.hosts != nil && !slices.Contains(k.hosts, hosts) ||
					k.launchers != nil && !slices.Contains(k.launchers, launcher) {
					continue
				}
				name := fmt.Sprintf("%s/%s%d", strings.ReplaceAll(k.name, " ", "_"), launcher,
					hosts)
				of := k.name + strconv.Itoa(hosts)
				all = append(all, variant{of, launcher, scenario{name, func(t *testing.T) {
					table.add(c.runKillCase(t, k, launcher, hosts))
				}}})
			}
		}
	}
	runConcurrently(t, selected(all))
	t.Log("\n" + table.String())
}

func (c *cluster) runKillCase(t *testing.T, k killCase, launcher string, hosts int) killResult {
	flags := []string{"--peer-timeout", "3s"}
	j := c.runningJob(t, launcher, hosts, flags, worker("session", jobDir))
	workers, rdzvs := j.workerProcesses(), j.rdzvProcesses()
	j.agentsBy = j.agentsByParent()
	watch := watchExits(workers, rdzvs)
	defer watch.close()
	start := time.Now()
	k.kill(j)
	watch.wait(15 * time.Second)
	r := killResult{killed: k.name, launcher: launcher, hosts: hosts}
	r.workers, r.all = watch.lastExit(start, workers), watch.lastExit(start, rdzvs)
	r.survivors = watch.check(t)
	r.commands = j.launcherCodes()
	r.returned = time.Since(start)
	codes := k.codes
	if k.resumes == launcher {
		codes = append(slices.Clone(codes), 128+15)
	}
	r.codes = j.checkAgentCodes(codes...)
	if k.resumes != launcher && len(slices.Compact(slices.Clone(r.codes))) > 1 {
		t.Errorf("the agents ended with the exit codes %d, want the same from all", r.codes)
	}
	j.removeLeftovers()
	return r
}

// workerProcesses returns the job's workers and their descendants, of which each has one.
func (j *job) workerProcesses() (pids []int) {
	j.t.Helper()
	all := func() bool { // a descendant may not have executed its program yet
		pids = slices.DeleteFunc(j.tree(), func(pid int) bool { return !isWorker(pid) })
		return len(pids) == 2*workersPerJob
	}
	if !eventually(waitLimit, all) {
		j.t.Fatalf("%d workers and descendants, want %d", len(pids), 2*workersPerJob)
	}
	return pids
}

// noReturn stands for the code of a launcher that does not return.
const noReturn = -1

// launcherCodes waits for the job's commands and returns their exit codes. An srun whose slurmstepd
// was killed does not return, and is killed.
func (j *job) launcherCodes() (codes []int) {
	for _, command := range j.commands {
		if j.launcher == "slurm" && !command.endsWithin(5*time.Second) {
			command.signal(syscall.SIGKILL)
			codes = append(codes, noReturn)
		} else {
			codes = append(codes, command.code())
		}
	}
	return codes
}
