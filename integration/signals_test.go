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
	"time"
)

// A summons is a signal from outside, by whatever way, and what the workers get of it.
type signalCase struct {
	name     string
	launcher string
	send     func(j *job)
	own      string // what the last rank gets; by hand the other rank of its agent does too
	others   string
	code     int
}

// toAgent sends to the agent of the last rank, toGroup to its process group, toLauncher to the command that the user has started.
func toAgent(s syscall.Signal) func(j *job) {
	return func(j *job) { j.strike(j.agentOf(lastRank), s) }
}

func toGroup(s syscall.Signal) func(j *job) {
	return func(j *job) { j.strike(-groupOf(j.agentOf(lastRank)), s) }
}

func toLauncher(s syscall.Signal) func(j *job) {
	return func(j *job) { j.strike(j.commands[0].pid(), s) }
}

func scancel(s string) func(j *job) {
	return func(j *job) { j.slurmCommand("scancel", "--signal="+s, j.workers[0].Env["SLURM_JOB_ID"]) }
}

func (j *job) slurmCommand(argv ...string) {
	j.t.Helper()
	line := append(j.f.slurm("on", "1"), argv...)
	if argv[0] == "scontrol" { // not for users
		line = slices.DeleteFunc(line, func(word string) bool { return strings.HasPrefix(word, "HOSTS_AS=") })
	}
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		j.t.Fatalf("%q: %v\n%s", argv, err, out)
	}
}

// Each signal reaches a worker once. The workers end with 0 after one that asks them to end: they have written a
// checkpoint. Then the job ends with 0 as well, whatever mpirun makes of it.
var signalCases = []signalCase{
	{"agent USR1", "byhand", toAgent(syscall.SIGUSR1), "SIGUSR1 SIGTERM", "SIGTERM", 0},
	{"agent USR2", "byhand", toAgent(syscall.SIGUSR2), "SIGUSR2 SIGTERM", "SIGTERM", 0},
	{"agent TERM", "byhand", toAgent(syscall.SIGTERM), "SIGTERM", "SIGTERM", 0},
	{"agent INT", "byhand", toAgent(syscall.SIGINT), "SIGTERM", "SIGTERM", 0},
	{"agent HUP", "byhand", toAgent(syscall.SIGHUP), "SIGTERM", "SIGTERM", 0},
	{"agent QUIT", "byhand", toAgent(syscall.SIGQUIT), "SIGTERM", "SIGTERM", 0},
	{"group USR1", "byhand", toGroup(syscall.SIGUSR1), "SIGUSR1 SIGTERM", "SIGTERM", 0},
	{"group TERM", "byhand", toGroup(syscall.SIGTERM), "SIGTERM", "SIGTERM", 0},
	{"group INT", "byhand", toGroup(syscall.SIGINT), "SIGINT", "SIGTERM", 0},
	{"group QUIT", "byhand", toGroup(syscall.SIGQUIT), "SIGQUIT", "SIGTERM", 0},
	{"group HUP", "byhand", toGroup(syscall.SIGHUP), "SIGHUP", "SIGTERM", 0},

	{"agent USR1", "openmpi", toAgent(syscall.SIGUSR1), "SIGUSR1 SIGTERM", "SIGTERM", 0},
	{"agent TERM", "openmpi", toAgent(syscall.SIGTERM), "SIGTERM", "SIGTERM", 0},
	{"mpirun TERM", "openmpi", toLauncher(syscall.SIGTERM), "SIGTERM", "SIGTERM", 1},
	{"mpirun INT", "openmpi", toLauncher(syscall.SIGINT), "SIGTERM", "SIGTERM", 1},
	{"mpirun USR1", "openmpi", toLauncher(syscall.SIGUSR1), "SIGUSR1 SIGTERM", "SIGUSR1 SIGTERM", 0},
	{"mpirun USR2", "openmpi", toLauncher(syscall.SIGUSR2), "SIGUSR2 SIGTERM", "SIGUSR2 SIGTERM", 0},

	{"agent USR1", "hydra", toAgent(syscall.SIGUSR1), "SIGUSR1 SIGTERM", "SIGTERM", 0},
	{"agent TERM", "hydra", toAgent(syscall.SIGTERM), "SIGTERM", "SIGTERM", 0},
	{"mpiexec TERM", "hydra", toLauncher(syscall.SIGTERM), "SIGTERM", "SIGTERM", 0},
	{"mpiexec INT", "hydra", toLauncher(syscall.SIGINT), "SIGINT", "SIGINT", 0},
	{"mpiexec USR1", "hydra", toLauncher(syscall.SIGUSR1), "SIGUSR1 SIGTERM", "SIGUSR1 SIGTERM", 0},

	{"agent USR1", "slurm", toAgent(syscall.SIGUSR1), "SIGUSR1 SIGTERM", "SIGTERM", 0},
	{"agent TERM", "slurm", toAgent(syscall.SIGTERM), "SIGTERM", "SIGTERM", 0},
	{"scancel USR1", "slurm", scancel("USR1"), "SIGUSR1 SIGTERM", "SIGUSR1 SIGTERM", 0},
	{"scancel TERM", "slurm", scancel("TERM"), "SIGTERM", "SIGTERM", 0},
	{"srun USR1", "slurm", toLauncher(syscall.SIGUSR1), "SIGUSR1 SIGTERM", "SIGUSR1 SIGTERM", 0},
}

// lateSIGKILL makes mpirun leave its ranks more than a second between SIGTERM and SIGKILL, which a busy machine may need.
const lateSIGKILL = "OMPI_MCA_odls_base_sigkill_timeout=4"

func TestSignalsArriveOnce(t *testing.T) {
	f := newField(t)
	f.env = []string{lateSIGKILL}
	var scenarios []scenario
	for i, s := range signalCases {
		scenarios = append(scenarios, scenario{s.launcher + "/" + strings.ReplaceAll(s.name, " ", "_"), func(t *testing.T) { f.runSignalCase(t, s, 1+i%2) }})
	}
	runConcurrently(t, scenarios)
}

func (f *field) runSignalCase(t *testing.T, s signalCase, hosts int) {
	j := f.job(t, s.launcher, hosts, nil, actor("count"))
	agent := j.agentOf(lastRank)
	s.send(j)
	if strings.Contains(s.own, " ") { // one that does not end the job; another does, when the workers have had the first
		j.waitForFirst(s)
		j.strike(j.agentOf(0), syscall.SIGTERM)
	}
	for _, command := range j.commands {
		if code := command.code(); code != s.code {
			t.Errorf("the launcher ended with %d, want %d", code, s.code)
		}
	}
	for rank, worker := range j.workers {
		want := s.wanted(rank)
		text, err := os.ReadFile(signalsFile(filepath.Join(j.root, "job"), worker.Env["RANK"]))
		if err != nil {
			t.Errorf("rank %d, whose agent is %d (struck: %d), has not told: %v", rank, j.agentOf(rank), agent, err)
		} else if got := string(text); got != want {
			t.Errorf("rank %d got %q, want %q", rank, got, want)
		}
	}
	j.removeLeftovers()
}

// wanted is what a rank gets of it.
func (s signalCase) wanted(rank int) string {
	if rank == lastRank || s.launcher == "byhand" && rank == lastRank-1 {
		return s.own
	}
	return s.others
}

// waitForFirst waits until the ranks that get two signals have noted the first.
func (j *job) waitForFirst(s signalCase) {
	j.t.Helper()
	for rank, worker := range j.workers {
		first, _, two := strings.Cut(s.wanted(rank), " ")
		file := signalsFile(filepath.Join(j.root, "job"), worker.Env["RANK"])
		noted := func() bool { text, _ := os.ReadFile(file); return string(text) == first }
		if two && !eventually(waitLimit, noted) {
			j.t.Fatalf("rank %d has not got %s", rank, first)
		}
	}
}

// standard leaves of a set the signals below 32. The others are of thread libraries: whether this run ignores one of
// those is inherited from whoever started it, and none of rdzv's business.
func standard(set string) string {
	bits, err := strconv.ParseUint(set, 16, 64)
	if err != nil {
		return set
	}
	return fmt.Sprintf("%016x", bits&(1<<31-1))
}

// none is a set of no signals as /proc shows it.
const none = "0000000000000000"

// A worker begins with no signal blocked, none caught, and none ignored but those that its launcher ignores for it.
func TestInitialSignalState(t *testing.T) {
	forEachLauncher(t, func(t *testing.T, l launcher) {
		p := l.place(t)
		job := p.start(l.line(p, 2, nil, []string{"cat", "/proc/self/status"})...)
		if code := job.code(); code != 0 {
			t.Errorf("the launcher ended with %d", code)
		}
		for name, want := range map[string]string{"SigBlk": none, "SigIgn": l.ignores, "SigCgt": none} {
			lines := job.linesWith(name + ":")
			if len(lines) != 2 || standard(strings.TrimPrefix(lines[0], name+":\t")) != want || lines[0] != lines[1] {
				t.Errorf("%s of the workers: %q, want %s", name, lines, want)
			}
		}
	})
}

// A pause of all agents, longer than their patience with one another, ends nothing.
func TestPauses(t *testing.T) {
	f := newField(t)
	var scenarios []scenario
	for i, launcher := range jobLaunchers {
		scenarios = append(scenarios, scenario{launcher, func(t *testing.T) { f.pauseJob(t, launcher, 1+i%2) }})
	}
	runConcurrently(t, scenarios)
}

// pauseTime is longer than the shortest --peer-timeout.
const pauseTime = 4 * time.Second

func (f *field) pauseJob(t *testing.T, launcher string, hosts int) {
	end := filepath.Join(newPlace(t).root, "end")
	j := f.startJob(t, launcher, hosts, []string{"--peer-timeout", "3s"}, []string{self, "actor", "until", end, ""})
	j.workers = records(t, filepath.Join(j.root, "job"), workersPerJob)
	agents := j.agentsNow()
	stop := func() { j.all(agents, syscall.SIGSTOP) }
	goOn := func() { j.all(agents, syscall.SIGCONT) }
	if launcher == "slurm" {
		id := j.workers[0].Env["SLURM_JOB_ID"]
		stop = func() { j.slurmCommand("scontrol", "suspend", id) }
		goOn = func() { j.slurmCommand("scontrol", "resume", id) }
	}
	stop()
	if !eventually(waitLimit, func() bool { return !slices.ContainsFunc(agents, func(pid int) bool { return statOf(pid)[0] != "T" }) }) {
		t.Error("not all agents are stopped")
	}
	j.runFor(pauseTime)
	goOn()
	j.runFor(pauseTime) // nobody misses anybody
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range j.commands {
		if code := command.code(); code != 0 {
			t.Errorf("the launcher ended with %d", code)
		}
	}
	if said := j.commands[0].linesWith("rdzv:"); len(said) > 0 {
		t.Error(fmt.Errorf("rdzv said %q", said))
	}
	j.removeLeftovers()
}

// runFor fails the test if one of the job's commands ends within the time.
func (j *job) runFor(d time.Duration) {
	j.t.Helper()
	deadline := time.Now().Add(d)
	for _, command := range j.commands {
		command.runsUntil(deadline)
	}
}

func (j *job) all(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		j.strike(pid, s)
	}
}
