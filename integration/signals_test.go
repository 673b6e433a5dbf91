package integration

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A signalCase is a signal to a process of a job, and what the workers receive.
type signalCase struct {
	launcher string
	target   string // see send
	signal   syscall.Signal
	last     string // what the last rank receives, and the others of its agent
	others   string
	code     int
}

const (
	hup  = syscall.SIGHUP
	intr = syscall.SIGINT
	quit = syscall.SIGQUIT
	term = syscall.SIGTERM
	usr1 = syscall.SIGUSR1
	usr2 = syscall.SIGUSR2
)

// Each worker receives a signal once. After one that asks it to end, it exits with 0, as after a
// checkpoint. The job was stopped nevertheless, and its code is that of the signal that ended it,
// except under mpirun if mpirun received the signal. (See checkEnd for mpiexec.hydra.)
var signalCases = []signalCase{
	{"direct", "agent", usr1, "SIGUSR1 SIGTERM", "SIGTERM", 143},
	{"direct", "agent", usr2, "SIGUSR2 SIGTERM", "SIGTERM", 143},
	{"direct", "agent", term, "SIGTERM", "SIGTERM", 143},
	{"direct", "agent", intr, "SIGTERM", "SIGTERM", 130},
	{"direct", "agent", hup, "SIGTERM", "SIGTERM", 129},
	{"direct", "agent", quit, "SIGTERM", "SIGTERM", 131},
	{"direct", "group", usr1, "SIGUSR1 SIGTERM", "SIGTERM", 143},
	{"direct", "group", term, "SIGTERM", "SIGTERM", 143},
	{"direct", "group", intr, "SIGTERM", "SIGTERM", 130},
	{"direct", "group", quit, "SIGTERM", "SIGTERM", 131},
	{"direct", "group", hup, "SIGTERM", "SIGTERM", 129},

	{"openmpi", "agent", usr1, "SIGUSR1 SIGTERM", "SIGTERM", 143},
	{"openmpi", "agent", winch, "SIGWINCH SIGTERM", "SIGTERM", 143},
	{"openmpi", "agent", cont, "SIGCONT SIGTERM", "SIGTERM", 143},
	{"openmpi", "agent", term, "SIGTERM", "SIGTERM", 143},
	{"openmpi", "launcher", term, "SIGTERM", "SIGTERM", 1},
	{"openmpi", "launcher", intr, "SIGTERM", "SIGTERM", 1},
	{"openmpi", "launcher", usr1, "SIGUSR1 SIGTERM", "SIGUSR1 SIGTERM", 143},
	{"openmpi", "launcher", usr2, "SIGUSR2 SIGTERM", "SIGUSR2 SIGTERM", 143},
	{"openmpi", "launcher", cont, "SIGCONT SIGTERM", "SIGCONT SIGTERM", 143},

	{"hydra", "agent", usr1, "SIGUSR1 SIGTERM", "SIGTERM", 143},
	{"hydra", "agent", winch, "SIGWINCH SIGTERM", "SIGTERM", 143},
	{"hydra", "agent", cont, "SIGCONT SIGTERM", "SIGTERM", 143},
	{"hydra", "agent", term, "SIGTERM", "SIGTERM", 143},
	{"hydra", "launcher", term, "SIGTERM", "SIGTERM", 143},
	{"hydra", "launcher", intr, "SIGTERM", "SIGTERM", 130},
	{"hydra", "launcher", usr1, "SIGUSR1 SIGTERM", "SIGUSR1 SIGTERM", 143},

	{"slurm", "agent", usr1, "SIGTERM", "SIGTERM", 143},
	{"slurm", "agent", term, "SIGTERM", "SIGTERM", 143},
	{"slurm", "scancel", usr1, "SIGUSR1 SIGTERM", "SIGUSR1 SIGTERM", 143},
	{"slurm", "scancel", usr2, "SIGUSR2 SIGTERM", "SIGUSR2 SIGTERM", 143},
	{"slurm", "scancel", winch, "SIGWINCH SIGTERM", "SIGWINCH SIGTERM", 143},
	{"slurm", "scancel", cont, "SIGCONT SIGTERM", "SIGCONT SIGTERM", 143},
	{"slurm", "scancel", term, "SIGTERM", "SIGTERM", 143},
	{"slurm", "scancel", intr, "SIGINT", "SIGINT", 130},
	{"slurm", "scancel", hup, "SIGHUP", "SIGHUP", 129},
	{"slurm", "scancel", quit, "SIGQUIT", "SIGQUIT", 131},
	{"slurm", "launcher", usr1, "SIGUSR1 SIGTERM", "SIGUSR1 SIGTERM", 143},
}

// send sends the signal to the agent of the last rank, to its process group, to the launcher, or to
// the whole job with scancel.
func (s signalCase) send(j *job) {
	switch s.target {
	case "agent":
		j.signal(j.agentOf(lastRank), s.signal)
	case "group":
		j.signal(-j.groupOf(lastRank), s.signal)
	case "launcher":
		j.signal(j.commands[0].pid(), s.signal)
	case "scancel":
		j.slurmCommand("scancel", fmt.Sprintf("--signal=%d", s.signal), j.workers[0].Env["SLURM_JOB_ID"])
	}
}

func (j *job) slurmCommand(argv ...string) {
	j.t.Helper()
	line := append(j.cluster.slurm("on", "1"), argv...)
	if argv[0] == "scontrol" { // only root may use it
		line = asRootOnHost(line)
	}
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		j.t.Fatalf("%q: %v\n%s", argv, err, out)
	}
}

// lateSIGKILL makes mpirun wait longer than 1 s between SIGTERM and SIGKILL, because the workers of
// a busy machine may need longer to end.
const lateSIGKILL = "OMPI_MCA_odls_base_sigkill_timeout=4"

func TestSignalsArriveOnce(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	c.jobEnv = []string{lateSIGKILL}
	var all []variant
	for i, s := range signalCases {
		of := s.target + "_" + unix.SignalName(s.signal)
		name := s.launcher + "/" + of
		if s.target == "launcher" { // each launcher handles signals in its own way
			of = name
		}
		all = append(all, variant{of, s.launcher, scenario{name, func(t *testing.T) {
			c.runSignalCase(t, s, 1+i%2)
		}}})
	}
	runConcurrently(t, selected(all))
}

func (j *job) waitForNoted(rank int, want string) {
	j.t.Helper()
	file, text := signalsFile(j.records(), j.workers[rank].Env["RANK"]), []byte(nil)
	noted := func() bool { text, _ = os.ReadFile(file); return string(text) == want }
	if !eventually(waitLimit, noted) {
		j.t.Fatalf("rank %d has received %q, want %s", rank, text, want)
	}
}

func (c *cluster) runSignalCase(t *testing.T, s signalCase, hosts int) {
	program := worker("signals", jobDir)
	if s.signal == winch || s.signal == cont {
		program = append(program, "more")
	}
	j := c.runningJob(t, s.launcher, hosts, nil, program)
	s.send(j)
	if !s.ends() {
		j.waitForFirst(s)
		j.signal(j.agentOf(0), syscall.SIGTERM)
	}
	s.checkEnd(j, s.code)
	for rank, worker := range j.workers {
		worker.checkSignals(t, j.records(), s.expected(rank))
	}
	j.removeLeftovers()
}

// ends says whether the signal ends a job. If it does not, SIGTERM follows.
func (s signalCase) ends() bool {
	return !slices.Contains([]syscall.Signal{usr1, usr2, winch, cont}, s.signal)
}

// checkEnd checks the code of the launcher, or that of the agents if the launcher is an
// mpiexec.hydra that has forwarded a signal. It then returns 0 if its proxies see the output of
// all agents end before they see the agents' own ends (MPICH 4.0.2, pmip.c, forced_cleanup; 1 of
// 10 runs of plain python3).
func (s signalCase) checkEnd(j *job, code int) {
	j.t.Helper()
	if s.launcher == "hydra" && s.target == "launcher" {
		j.checkAgentCodes(code)
		return
	}
	j.checkCommands(code)
}

// expected is what a rank receives.
func (s signalCase) expected(rank int) string {
	if rank == lastRank || s.launcher == "direct" && rank == lastRank-1 {
		return s.last
	}
	return s.others
}

// waitForFirst waits until the ranks that receive two signals have noted the first.
func (j *job) waitForFirst(s signalCase) {
	j.t.Helper()
	for rank := range j.workers {
		if first, _, two := strings.Cut(s.expected(rank), " "); two {
			j.waitForNoted(rank, first)
		}
	}
}
