package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// A field is two hosts with every launcher on them, where many jobs run side by side.
type field struct {
	*cluster
	env []string // for all of a job's processes
}

func newField(t *testing.T) *field {
	t.Helper()
	f := &field{cluster: newCluster(t, 2)}
	f.run(f.slurm("up")) // the hosts take Slurm down with them
	return f
}

// jobLaunchers are the ways to start a job of four workers, on one host or two of the field.
var jobLaunchers = []string{"byhand", "openmpi", "hydra", "slurm"}

// workersPerJob is how many workers those jobs have.
const workersPerJob = 4

// A job is one that a test on the field has started.
type job struct {
	*place
	f         *field
	launcher  string
	hosts     int
	commands  []*process  // that the user has started
	workers   []record    // by rank
	agents    map[int]int // by the pid of their parents
	signalled map[int]syscall.Signal
	orphaned  bool     // its launcher was killed
	frozen    []int    // a stopped agent and what it guards
	via       []string // what starts that shell; see minded
	codes     string   // where each agent's exit code is noted, see minded
}

// start starts a job whose workers note themselves in the directory that they are given last, and waits for them.
func (f *field) job(t *testing.T, launcher string, hosts int, flags, prog []string) *job {
	t.Helper()
	j := f.startJob(t, launcher, hosts, flags, append(prog, ""))
	j.workers = records(t, filepath.Join(j.root, "job"), workersPerJob)
	return j
}

// startJob starts a job and waits for nothing. An empty last argument of the program is the workers' directory.
// The agents are started by way of the words of via.
func (f *field) startJob(t *testing.T, launcher string, hosts int, flags, prog []string, via ...string) *job {
	t.Helper()
	j := &job{place: newPlace(t), f: f, via: via, launcher: launcher, hosts: hosts, signalled: map[int]syscall.Signal{}}
	t.Cleanup(j.checkTree) // before the place is left
	j.codes = j.dir("codes")
	if last := len(prog) - 1; prog[last] == "" {
		prog[last] = j.dir("job")
	}
	for host, line := range j.lines(flags, prog) {
		at := 1
		if launcher == "byhand" && hosts == 2 {
			at = host + 1
		}
		on := f.on(at, line...)
		if launcher == "slurm" {
			on = append(f.slurm("on", "1"), line...)
		}
		j.commands = append(j.commands, j.startWith(j.variables(), on...))
	}
	return j
}

// variables are what a place's processes on hosts need beside the place's own.
func (j *job) variables() []string {
	return append([]string{"HOSTS_DIR=" + filepath.Join(j.f.root, "hosts")}, j.f.env...)
}

// lines are the commands that start the job.
func (j *job) lines(flags, prog []string) [][]string {
	perHost := strconv.Itoa(workersPerJob / j.hosts)
	switch j.launcher {
	case "byhand":
		store := "node1"
		line := j.recordingExitCode(append([]string{"--nodes", "2", "--nproc-per-node", "2", "--store", store}, flags...), prog)
		return [][]string{line, line}
	case "openmpi":
		line := []string{mpirun, "--oversubscribe", "-np", strconv.Itoa(workersPerJob)}
		if j.hosts == 2 {
			line = append(line, "--mca", "plm_rsh_agent", j.f.remoteShell(j.place), "--host", "node1:2,node2:2")
		}
		return [][]string{append(line, j.recordingExitCode(flags, prog)...)}
	case "hydra":
		line := []string{"mpiexec.hydra"}
		if j.hosts == 2 {
			line = append(line, "-launcher", "ssh", "-launcher-exec", j.f.remoteShell(j.place), "-hosts", "node1,node2", "-ppn", perHost)
		}
		return [][]string{append(append(line, "-np", strconv.Itoa(workersPerJob)), j.recordingExitCode(flags, prog)...)}
	default: // overcommitted, a job takes one of the processors that Slurm believes in
		line := []string{"srun", "-O", "-N", strconv.Itoa(j.hosts), "-n", strconv.Itoa(workersPerJob), "--ntasks-per-node", perHost}
		return [][]string{append(line, j.recordingExitCode(flags, prog)...)}
	}
}

// recordingExitCode is rdzv exec under a shell that notes the exit code as a file named after its own pid, the agent's parent.
func (j *job) recordingExitCode(flags, prog []string) []string {
	script := `trap : TERM INT HUP QUIT USR1 USR2; codes=$1; shift; "$@"; code=$?; echo $code > "$codes.$$" && mv "$codes.$$" "$codes/$$"; exit $code`
	return slices.Concat(j.via, []string{"sh", "-c", script, "sh", j.codes}, rdzvExec(flags, prog))
}

// agentCodes returns what the agents exited with that lived to have a parent to tell it to.
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
		parent, _ := strconv.Atoi(filepath.Base(file))
		if code, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil { // else its parent was killed too
			codes[parent] = code
		}
	}
	return codes
}

// agentOf is the rdzv exec above a rank.
func (j *job) agentOf(rank int) int { return parentOf(j.watchdogOf(rank)) }

func (j *job) watchdogOf(rank int) int { return parentOf(j.workers[rank].PID) }

// daemonOf is the launcher's process above a rank's agent that has one of these names.
func (j *job) daemonOf(rank int, names ...string) int {
	j.t.Helper()
	for pid := parentOf(j.agentOf(rank)); pid > 1; pid = parentOf(pid) {
		for _, name := range names {
			if nameOf(pid) == name {
				return pid
			}
		}
	}
	j.t.Fatalf("none of %q is above rank %d", names, rank)
	return 0
}

// strike sends a signal to a process that may be root's.
func (j *job) strike(pid int, s syscall.Signal) {
	j.t.Helper()
	j.signalled[pid] = s
	err := syscall.Kill(pid, s)
	if err == syscall.EPERM {
		err = exec.Command("sudo", "-n", "kill", fmt.Sprintf("-%d", s), "--", strconv.Itoa(pid)).Run()
	}
	if err != nil {
		j.t.Fatalf("cannot send %v to %d: %v", s, pid, err)
	}
}

// runConcurrently tells many stories at once, a few at a time, for most of the time they wait.
func runConcurrently(t *testing.T, scenarios []scenario) {
	free := make(chan struct{}, *atOnce)
	var all sync.WaitGroup
	for _, s := range scenarios {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			t.Run(s.name, s.tell)
		})
	}
	all.Wait()
}

type scenario struct {
	name string
	tell func(t *testing.T)
}

// linesWith is that of all commands.
func (j *job) linesWith(texts ...string) (found []string) {
	for _, command := range j.commands {
		found = append(found, command.linesWith(texts...)...)
	}
	return found
}
