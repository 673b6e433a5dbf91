package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// newJobCluster makes two hosts with Slurm, on which startJob starts jobs under all launchers.
func newJobCluster(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, 2)
	c.startSlurm(1, 2)
	return c
}

// jobLaunchers are the ways in which startJob starts a job, on one of the hosts or on both.
var jobLaunchers = []string{"direct", "openmpi", "hydra", "slurm"}

// workersPerJob is the number of workers of each job, lastRank the rank of the last. Its agent does
// not host the store, except sometimes if there is no launcher.
const (
	workersPerJob = 4
	lastRank      = workersPerJob - 1
)

// jobDir stands for the job's directory of records in the command line of its program.
const jobDir = "JOBDIR"

// A job is one that startJob has started.
type job struct {
	*place
	cluster   *cluster
	launcher  string
	hosts     int
	ranks     int                    // number of workers
	commands  []*process             // that the user has started
	workers   []record               // by rank
	agentsBy  map[int]int            // agents by the pids of their parents
	signalled map[int]syscall.Signal // by pid
	orphaned  bool                   // the launcher was killed
	via       []string               // starts recordingExitCode's shell
	codes     string                 // the directory of recordingExitCode
}

// runningJob starts a job and waits until all its workers have started.
func (c *cluster) runningJob(
	t *testing.T, launcher string, hosts int, flags, program []string,
) *job {
	t.Helper()
	j := c.startJob(t, launcher, hosts, flags, program)
	j.workers = records(t, j.records(), workersPerJob)
	return j
}

// startJob starts a job, with 2 workers on each host unless there is only one. The command line via
// starts each agent.
func (c *cluster) startJob(
	t *testing.T, launcher string, hosts int, flags, program []string, via ...string,
) *job {
	t.Helper()
	j := &job{
		place: newPlace(t), cluster: c, via: via, launcher: launcher, hosts: hosts,
		ranks: max(workersPerJob, 2*hosts), signalled: map[int]syscall.Signal{},
	}
	t.Cleanup(j.checkTree) // before the place is removed
	j.codes = j.dir("codes")
	program = slices.Clone(program)
	for i, word := range program {
		if word == jobDir {
			program[i] = j.records()
		}
	}
	env := append([]string{"HOSTS_DIR=" + filepath.Join(c.root, "hosts")}, c.jobEnv...)
	for _, line := range j.commandLines(flags, program) {
		j.commands = append(j.commands, j.startWith(env, line...))
	}
	return j
}

// records is the directory of the workers' records.
func (j *job) records() string { return j.dir("job") }

// commandLines are the command lines that start the job.
func (j *job) commandLines(flags, program []string) [][]string {
	c := j.cluster
	n, perHost := strconv.Itoa(j.ranks), strconv.Itoa(j.ranks/j.hosts)
	var on []string // the hosts of a launcher on several
	for host := range j.hosts {
		on = append(on, fmt.Sprint("node", host+1))
	}
	exec := j.recordingExitCode(rdzvExec(flags, program))
	switch j.launcher {
	case "direct":
		agents := max(2, j.hosts)
		nodes := []string{"--nodes", strconv.Itoa(agents), "--nproc-per-node", "2", "--store", "node1"}
		return j.agentCommands(agents, append(nodes, flags...), program)
	case "openmpi":
		line := mpirunCommand(j.ranks)
		if j.hosts > 1 {
			cluster := &clusterPlace{j.place, c}
			line = cluster.openMPI("--host", strings.Join(on, ":2,")+":2", "-np", n)
		}
		return [][]string{c.on(1, append(line, exec...)...)}
	case "hydra":
		line := []string{"mpiexec.hydra", "-np", n}
		if j.hosts > 1 {
			shell := c.remoteShell(j.place)
			line = append(line, "-launcher", "ssh", "-launcher-exec", shell,
				"-hosts", strings.Join(on, ","), "-ppn", perHost)
		}
		return [][]string{c.on(1, append(line, exec...)...)}
	default: // with -O, a job uses one of the CPUs that Slurm believes the hosts to have
		hosts := strconv.Itoa(j.hosts)
		line := []string{"on", "1", "srun", "-O", "-N", hosts, "-n", n, "--ntasks-per-node",
			perHost}
		return [][]string{c.slurm(append(line, exec...)...)}
	}
}

// agentCommands are the command lines of the agents of a job without a launcher: one on each host,
// or two on one host.
func (j *job) agentCommands(agents int, flags, program []string) (lines [][]string) {
	if j.hosts == 1 {
		for _, line := range onOneHost(agents, flags, program) {
			lines = append(lines, j.cluster.on(1, j.recordingExitCode(line)...))
		}
		return lines
	}
	for host := range j.hosts {
		exec := j.recordingExitCode(rdzvExec(flags, program))
		lines = append(lines, j.cluster.on(host+1, exec...))
	}
	return lines
}

// recordingExitCode runs a command line under a shell that writes its exit code to a file with the
// shell's pid as its name. The file appears when it is complete: a launcher may kill the shell.
func (j *job) recordingExitCode(line []string) []string {
	script := `trap : TERM INT HUP QUIT USR1 USR2
		codes=$1; shift; "$@"; code=$?
		echo $code > "$codes.$$" && mv "$codes.$$" "$codes/$$"; exit $code`
	return slices.Concat(j.via, []string{"sh", "-c", script, "sh", j.codes}, line)
}

// agentCodes returns the exit codes of the agents by the pids of their parents. An agent whose
// parent was killed is missing.
func (j *job) agentCodes() map[int]int {
	j.t.Helper()
	codes := map[int]int{}
	files, err := filepath.Glob(filepath.Join(j.codes, "*"))
	if err != nil {
		j.t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			j.t.Fatal(err)
		}
		parent, err := strconv.Atoi(filepath.Base(file))
		if err != nil {
			j.t.Fatal(err)
		}
		codes[parent], err = strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			j.t.Fatal(err)
		}
	}
	return codes
}

// checkCommands waits for the job's commands and checks their exit codes.
func (j *job) checkCommands(want int) {
	j.t.Helper()
	for _, command := range j.commands {
		command.checkCode(want)
	}
}

// checkTree waits until all processes of the job have ended.
func (j *job) checkTree() {
	j.checkNone(j.tree)
	for _, pid := range j.tree() {
		kill(pid)
	}
}

// linesWith returns the lines of all commands that contain the texts.
func (j *job) linesWith(texts ...string) (found []string) {
	for _, command := range j.commands {
		found = append(found, command.linesWith(texts...)...)
	}
	return found
}

// agentOf is the agent of a rank, runnerOf its runner.
func (j *job) agentOf(rank int) int { return agentAbove(j.workers[rank].PID) }

// lastNode is the agent of the last two ranks, which are on one node, and their other task. The first
// task is not the agent if it starts late.
func (j *job) lastNode() (agent, other int) {
	last := len(j.workers) - 1
	agent, other = j.agentOf(last-1), j.agentOf(last)
	if !isAgent(agent) {
		agent, other = other, agent
	}
	return agent, other
}

// lastTask is a task of the last node that is no agent.
func (j *job) lastTask() int {
	j.t.Helper()
	_, task := j.lastNode()
	if task == 0 || isAgent(task) {
		j.t.Fatalf("the last two ranks have no other task than agents: process %d", task)
	}
	return task
}

func (j *job) runnerOf(rank int) int { return parentOf(j.workers[rank].PID) }

// storeHost is the agent that hosts the store, otherAgent one that does not. They are 0 if there is
// none.
func (j *job) storeHost() int  { return j.findAgent(hasStore) }
func (j *job) otherAgent() int { return j.findAgent(func(pid int) bool { return !hasStore(pid) }) }

func (j *job) findAgent(condition func(pid int) bool) int {
	agents := j.agents()
	if i := slices.IndexFunc(agents, condition); i >= 0 {
		return agents[i]
	}
	return 0
}

// daemonOf is the process of the launcher above a rank's agent that has one of these names.
func (j *job) daemonOf(rank int, names ...string) int {
	j.t.Helper()
	for pid := parentOf(j.agentOf(rank)); pid > 1; pid = parentOf(pid) {
		if slices.Contains(names, nameOf(pid)) {
			return pid
		}
	}
	j.t.Fatalf("no ancestor of the agent of rank %d has one of the names %q", rank, names)
	return 0
}

// signal sends a signal to a process, or to a process group if pid is negative. The process may be
// root's.
func (j *job) signal(pid int, s syscall.Signal) {
	j.t.Helper()
	if pid == 0 {
		j.t.Fatalf("cannot send %v: the process has ended", s)
	}
	j.signalled[pid] = s
	if err := trySignal(pid, s); err != nil {
		j.t.Fatalf("cannot send %v to process %d: %v", s, pid, err)
	}
}

func trySignal(pid int, s syscall.Signal) error {
	err := syscall.Kill(pid, s)
	if err == syscall.EPERM {
		err = exec.Command("sudo", "-n", "kill", fmt.Sprintf("-%d", s), "--",
			strconv.Itoa(pid)).Run()
	}
	return err
}

// removeLeftovers runs another agent in the place, which removes the files of agents that were
// killed. It waits for a second agent, so that it needs the token and hosts a store, but only
// briefly.
func (j *job) removeLeftovers() {
	j.t.Helper()
	alone := []string{"--nodes", "2", "--store", "localhost", "--join-timeout", "1s"}
	job := "leftovers-" + filepath.Base(j.root) // other tests do the same on this host
	j.start(rdzvExec(append(alone, "--job", job), []string{"true"})...).checkCode(124)
}
