package integration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A blow is something that may end a job.
type killCase struct {
	name   string
	hosts  []int    // on which the job runs; nil is one, and two
	under  []string // launchers; nil is all
	strike func(j *job)
	code   int // of every surviving agent
	or     int // what they may end with instead, all of them
}

// The last rank is never on the store's host's agent, the first always is by Slurm and MPI; without a launcher it may be either.
const lastRank = workersPerJob - 1

var killCases = []killCase{
	{name: "worker exits 7", code: workerCode,
		strike: func(j *job) { j.strike(j.workers[lastRank].PID, syscall.SIGUSR1) }},
	{name: "worker SIGKILL", code: 128 + 9,
		strike: func(j *job) { j.strike(j.workers[lastRank].PID, syscall.SIGKILL) }},
	{name: "agent", code: 123,
		strike: func(j *job) { j.strike(j.agentOf(lastRank), syscall.SIGKILL) }},
	{name: "store's agent", code: 123,
		strike: func(j *job) { j.strike(j.storeAgent(), syscall.SIGKILL) }},
	{name: "watchdog", code: 123,
		strike: func(j *job) { j.strike(j.watchdogOf(lastRank), syscall.SIGKILL) }},
	{name: "process group", code: 123,
		strike: func(j *job) { j.strike(-groupOf(j.agentOf(lastRank)), syscall.SIGKILL) }},
	{name: "agent SIGSTOP", code: 123, strike: func(j *job) { j.freeze(j.agentOf(lastRank)) }},
	{name: "store SIGSTOP", code: 123, strike: func(j *job) { j.freeze(j.storeAgent()) }},
	{name: "launcher", code: 123, under: []string{"openmpi", "hydra", "slurm"},
		strike: func(j *job) { j.orphaned = true; j.strike(j.commands[0].pid(), syscall.SIGKILL) }},
	// mpirun that misses an orted sends SIGTERM to the ranks of its own host at once: the job hears of either first.
	{name: "daemon", code: 123, or: 128 + 15, under: []string{"openmpi", "hydra", "slurm"}, hosts: []int{2},
		strike: func(j *job) {
			j.strike(j.daemonOf(lastRank, "orted", "hydra_pmi_proxy", "slurmstepd"), syscall.SIGKILL)
		}},
}

// storeAgent is the agent that listens for the others.
func (j *job) storeAgent() int {
	j.t.Helper()
	for rank := range workersPerJob {
		if agent := j.agentOf(rank); listens(agent) {
			return agent
		}
	}
	j.t.Fatal("no agent hosts the store")
	return 0
}

// Whoever is killed: everything of the job is gone at once, on all hosts, and the agents that live end with the job's code.
func TestKillMatrix(t *testing.T) {
	f := newField(t)
	var table results
	var scenarios []scenario
	for _, b := range killCases {
		for _, hosts := range []int{1, 2} {
			for _, launcher := range jobLaunchers {
				if b.hosts != nil && !slices.Contains(b.hosts, hosts) || b.under != nil && !slices.Contains(b.under, launcher) {
					continue
				}
				name := fmt.Sprintf("%s/%s%d", strings.ReplaceAll(b.name, " ", "_"), launcher, hosts)
				scenarios = append(scenarios, scenario{name, func(t *testing.T) { table.add(f.runKillCase(t, b, launcher, hosts)) }})
			}
		}
	}
	runConcurrently(t, scenarios)
	t.Log("\n" + table.String())
}

// A result is a row of the kill matrix.
type result struct {
	killCase, launcher string
	hosts              int
	workers, all       time.Duration // until the last worker or descendant, and the last of rdzv's processes, had ended
	back               time.Duration // until the launcher had returned
	survivors          int
	codes              []int // of the surviving agents
	commands           []int // codes of the commands that the user has started
}

// runKillCase starts a job, strikes, and checks what is left.
func (f *field) runKillCase(t *testing.T, b killCase, launcher string, hosts int) result {
	j := f.job(t, launcher, hosts, []string{"--peer-timeout", "3s"}, actor("family"))
	workers, rdzvs := j.kinds()
	r := result{killCase: b.name, launcher: launcher, hosts: hosts}
	j.agents = j.agentsByParent()
	bed := watchExits(slices.Collect(maps.Keys(workers)), slices.Collect(maps.Keys(rdzvs)))
	defer bed.close()
	began := time.Now()
	b.strike(j)
	bed.wait(15*time.Second, j.frozen)
	r.workers, r.all = bed.last(began, workers), bed.last(began, rdzvs)
	for _, agent := range j.frozen {
		_ = syscall.Kill(agent, syscall.SIGCONT) // unless the launcher has killed it
	}
	bed.wait(15*time.Second, nil)
	r.survivors = len(bed.pidfds)
	for pid := range bed.pidfds {
		t.Errorf("process %d is still alive: %q", pid, commandLine(pid))
	}
	r.commands = j.launcherCodes()
	r.back = time.Since(began)
	r.codes = j.checkAgentCodes(b.code, cmp.Or(b.or, b.code))
	if len(slices.Compact(slices.Clone(r.codes))) > 1 {
		t.Errorf("the agents ended with different codes: %d", r.codes)
	}
	j.removeLeftovers()
	return r
}

// checkAgentCodes returns the exit codes of the agents that survived, all of which must be the one given.
func (j *job) checkAgentCodes(want ...int) (codes []int) {
	j.checkTree() // their parents have noted them by then
	return j.compareAgentCodes(want...)
}

func (j *job) compareAgentCodes(want ...int) (codes []int) {
	for parent, code := range j.agentCodes() {
		switch signalled := j.signalled[j.agents[parent]]; {
		case signalled == syscall.SIGKILL:
			continue
		case signalled == syscall.SIGSTOP && j.launcher == "openmpi":
			continue // mpirun had sent it SIGTERM by the time it went on
		case code == 128+int(syscall.SIGKILL) && j.launcher == "slurm" && j.orphaned:
			continue // slurmd kills all processes of an srun that is gone, one by one: this agent before its parent
		}
		codes = append(codes, code)
		if !slices.Contains(want, code) {
			j.t.Errorf("an agent ended with %d, want %d", code, want)
		}
	}
	slices.Sort(codes)
	return codes
}

// freeze stops an agent, which its job then takes for lost.
func (j *job) freeze(agent int) {
	j.strike(agent, syscall.SIGSTOP)
	for _, pid := range j.tree() {
		if pid == agent || parentOf(pid) == agent || parentOf(parentOf(pid)) == agent {
			j.frozen = append(j.frozen, pid)
		}
	}
}

// kinds returns the job's workers and their descendants, one each, and its agents, watchdogs and sentinels.
func (j *job) kinds() (workers, rdzvs map[int]bool) {
	j.t.Helper()
	all := func() bool { // a descendant may be on its way between fork and exec
		workers, rdzvs = map[int]bool{}, map[int]bool{}
		for _, pid := range j.tree() {
			switch {
			case isRdzv(pid):
				rdzvs[pid] = true
			case isWorker(pid):
				workers[pid] = true
			}
		}
		return len(workers) == 2*workersPerJob
	}
	if !eventually(waitLimit, all) {
		j.t.Fatalf("%d workers and descendants, want %d", len(workers), 2*workersPerJob)
	}
	return workers, rdzvs
}

func (j *job) agentsByParent() map[int]int {
	agents := map[int]int{}
	for rank := range workersPerJob {
		agent := j.agentOf(rank)
		agents[parentOf(agent)] = agent
	}
	return agents
}

// launcherCodes waits for the launcher and returns its code; without a launcher there are two. An srun whose slurmstepd was killed waits
// for ever.
func (j *job) launcherCodes() (codes []int) {
	for _, command := range j.commands {
		if j.launcher == "slurm" && !eventually(5*time.Second, command.ended) {
			command.signal(syscall.SIGKILL)
			codes = append(codes, noReturn)
		} else {
			codes = append(codes, command.code())
		}
	}
	return codes
}

// noReturn stands for the code of a launcher that does not return.
const noReturn = -1

func (c *process) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// removeLeftovers runs another agent in the place, which removes what others have left that were killed. It asks for a second one, so that
// it needs the token, hosts a store, and does not wait.
func (j *job) removeLeftovers() {
	j.t.Helper()
	alone := []string{"--nodes", "2", "--store", "localhost", "--join-timeout", "100ms"}
	if code := j.start(rdzvExec(alone, []string{"true"})...).code(); code != 124 {
		j.t.Errorf("the next agent in this place ended with %d, want 124", code)
	}
}

// results are rows in the order of the matrix.
type results struct {
	mu   sync.Mutex
	rows []result
}

func (t *results) add(r result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, r)
}

func (t *results) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s %-8s %5s %9s %9s %9s %9s  %-20s %s\n", "killed", "launcher", "hosts", "workers", "rdzv", "launcher", "survivors", "agents' codes", "commands' codes")
	slices.SortFunc(t.rows, func(a, b result) int {
		return strings.Compare(fmt.Sprint(a.killCase, a.hosts, a.launcher), fmt.Sprint(b.killCase, b.hosts, b.launcher))
	})
	for _, r := range t.rows {
		fmt.Fprintf(&b, "%-16s %-8s %5d %9s %9s %9s %9d  %-20s %v\n", r.killCase, r.launcher, r.hosts,
			ms(r.workers), ms(r.all), ms(r.back), r.survivors, fmt.Sprint(r.codes), r.commands)
	}
	return b.String()
}

func ms(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }
