package integration

import (
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// lastRankAbsent runs rdzv exec, except in the last rank.
const lastRankAbsent = `if [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$SLURM_PROCID}}" = 3 ]
	then exec sleep 1000; fi; exec "$@"`

// One of the agents that wait for a missing one is killed: the others stop waiting.
func TestKilledWhileWaiting(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	victims := []struct {
		name  string
		agent func(j *job) int
	}{{"an agent", (*job).otherAgent}, {"store's agent", (*job).storeHost}}
	var table killTable
	var all []variant
	for _, launcher := range jobLaunchers {
		if launcher == "hydra" {
			continue // the agents wait in PMI's barrier, where Hydra kills them: TestKilledWhileJoining
		}
		for _, hosts := range []int{1, 2} {
			for _, victim := range victims {
				of := victim.name + strconv.Itoa(hosts)
				title := fmt.Sprintf("%s/%s%d", victim.name, launcher, hosts)
				all = append(all, variant{of, launcher, scenario{title, func(t *testing.T) {
					table.add(c.killWhileWaiting(t, victim.name, launcher, hosts, victim.agent))
				}}})
			}
		}
	}
	runConcurrently(t, selected(all))
	t.Log("\n" + table.String())
}

func (c *cluster) killWhileWaiting(
	t *testing.T, name, launcher string, hosts int, victim func(j *job) int,
) killResult {
	j := c.waitingJob(t, launcher, hosts)
	rdzvs := j.rdzvProcesses()
	watch := watchExits(rdzvs)
	defer watch.close()
	agent := victim(j)
	j.agentsBy = map[int]int{parentOf(agent): agent}
	start := time.Now()
	j.signal(agent, syscall.SIGKILL)
	watch.wait(10 * time.Second)
	r := killResult{killed: name + ", waiting", launcher: launcher, hosts: hosts}
	r.survivors, r.all = watch.check(t), watch.lastExit(start, rdzvs)
	for _, pid := range j.tree() { // the absent rank, and a launcher that waits for it
		if name := nameOf(pid); name == "sleep" || name == "srun" {
			kill(pid)
		}
	}
	r.commands = j.launcherCodes()
	r.codes = j.checkAgentCodes(123)
	j.removeLeftovers()
	return r
}

// waitingJob starts a job whose last agent is missing. It returns when the others have joined.
func (c *cluster) waitingJob(t *testing.T, launcher string, hosts int) (j *job) {
	t.Helper()
	joined := fmt.Sprintf("%d of %d tasks joined", workersPerJob-1, workersPerJob)
	if launcher == "direct" {
		joined = "2 of 3 agents joined"
		j = c.startJob(t, launcher, hosts, []string{"--nodes", "3"}, []string{"true"})
	} else {
		flags := []string{"--nproc-per-node", "1"}
		j = c.startJob(t, launcher, hosts, flags, []string{"true"}, "sh", "-c", lastRankAbsent,
			"sh")
	}
	// An agent that is connected but has not joined yet would look for another store.
	if !eventually(waitLimit, func() bool { return len(j.linesWith(joined)) > 0 }) {
		t.Fatalf("no agent has printed %q", joined)
	}
	return j
}

// An agent is killed at some step of joining: no process is left, and the others exit with 123, or
// with 124 if that agent had not joined yet.
func TestKilledWhileJoining(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	var all []variant
	for _, launcher := range jobLaunchers {
		for i, step := range joinSteps {
			name := launcher + "/" + step.name
			all = append(all, variant{step.name, launcher, scenario{name, func(t *testing.T) {
				c.killWhileJoining(t, launcher, 1+i%2, step.reached)
			}}})
		}
	}
	runConcurrently(t, selected(all))
}

var joinSteps = []struct {
	name    string
	reached func(j *job) bool
}{
	{"an agent runs", func(j *job) bool { return len(j.agents()) > 0 }},
	{"two agents run", func(j *job) bool { return len(j.agents()) > 1 }},
	{"the store listens", func(j *job) bool { return j.storeHost() != 0 }},
	{"an agent is connected", func(j *job) bool {
		connected := func(pid int) bool { return sockets(pid, established) > 0 }
		return slices.ContainsFunc(j.agents(), connected)
	}},
	{"a runner runs", func(j *job) bool { return len(j.rdzvProcesses()) > len(j.agents()) }},
	{"a worker runs", func(j *job) bool { return countRecords(j.records()) > 0 }},
}

func (c *cluster) killWhileJoining(
	t *testing.T, launcher string, hosts int, reached func(j *job) bool,
) {
	flags := []string{"--join-timeout", "3s", "--peer-timeout", "3s"}
	j := c.startJob(t, launcher, hosts, flags, worker("session", jobDir))
	if !eventually(waitLimit, func() bool { return reached(j) }) {
		t.Fatal("the job has not reached this step")
	}
	agents := j.agents()
	if len(agents) == 0 {
		t.Fatal("all agents have ended")
	}
	agent := agents[len(agents)-1]
	j.agentsBy = map[int]int{parentOf(agent): agent}
	j.signal(agent, syscall.SIGKILL)
	j.checkNone(j.rdzvProcesses)
	j.launcherCodes()
	want := []int{123, 124}
	if launcher == "openmpi" {
		want = append(want, 128+15) // mpirun ends the others before the leader notices the loss
	}
	j.checkAgentCodes(want...)
	j.removeLeftovers()
}

// Node 2 loses its network while a job of each launcher runs: all processes end on node 1 because
// agents are lost, and on node 2 because the store is lost.
func TestNodeCutOff(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	var jobs []*job
	var watches []*exitWatch
	var workers, rdzvs [][]int
	for i, launcher := range jobLaunchers {
		flags := []string{"--peer-timeout", "3s"}
		j := c.runningJob(t, launcher, 2, flags, worker("session", jobDir))
		j.agentsBy = j.agentsByParent()
		jobs = append(jobs, j)
		workers, rdzvs = append(workers, j.workerProcesses()), append(rdzvs, j.rdzvProcesses())
		watches = append(watches, watchExits(workers[i], rdzvs[i]))
	}
	start := time.Now()
	c.hosts("cut", "2")
	var table killTable
	for i, j := range jobs {
		watch := watches[i]
		watch.wait(15 * time.Second)
		defer watch.close()
		j.awaitShells()
		table.add(killResult{
			killed: "node cut off", launcher: j.launcher, hosts: 2, survivors: watch.check(t),
			workers: watch.lastExit(start, workers[i]), all: watch.lastExit(start, rdzvs[i]),
			codes: j.compareAgentCodes(123),
		})
	}
	t.Log("\n" + table.String())
	c.hosts("heal", "2")
	for _, j := range jobs { // the launchers may not have noticed yet
		for _, pid := range j.tree() {
			kill(pid)
		}
		j.removeLeftovers()
	}
}
