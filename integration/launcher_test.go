package integration

import (
	"strconv"
	"testing"
)

// A launcher starts rdzv exec on one host.
type launcher struct {
	name string
	// place makes a place in which the launcher works.
	place func(t *testing.T) *place
	// command is the command line that starts a job of n workers, with flags of rdzv exec.
	command func(p *place, n int, flags, program []string) []string
	// agents is the number of agents of such a job.
	agents func(n int) int
	// interrupts is how often a user types Ctrl-C to end a job.
	interrupts int
	// kills says that the launcher kills its ranks with SIGKILL when it is told to end, so that
	// their agents cannot remove their files.
	kills bool
	// ignores is the set of signals that its ranks ignore: those of Hydra ignore SIGTTIN.
	ignores string
}

// Without a launcher, a job is started directly.
var launchers = []launcher{
	{"direct", newPlace, direct, onePerNode, 1, false, noSignals},
	{"openmpi", newPlace, openMPI, onePerRank, 1, false, noSignals},
	{"hydra", newPlace, hydra, onePerRank, 1, false, "0000000000100000"},
	{"srun", newSlurm, srun, onePerRank, 2, true, noSignals},
}

func onePerNode(int) int   { return 1 }
func onePerRank(n int) int { return n }

// choice is the value of --launcher that selects a launcher, "" for direct. Each task then has an agent
// of its own.
func choice(launcher string) string {
	return map[string]string{"openmpi": "openmpi", "hydra": "hydra", "srun": "slurm"}[launcher]
}

// forEachLauncher runs the same test under every launcher.
func forEachLauncher(t *testing.T, test func(t *testing.T, l launcher)) {
	for _, l := range launchers {
		t.Run(l.name, func(t *testing.T) { test(t, l) })
	}
}

func rdzvExec(flags, program []string) []string {
	line := append([]string{*rdzvBin, "exec"}, flags...)
	return append(append(line, "--"), program...)
}

func direct(_ *place, n int, flags, program []string) []string {
	return rdzvExec(append([]string{"--nproc-per-node", strconv.Itoa(n)}, flags...), program)
}

// mpirunCommand starts n processes of what follows, even if Open MPI finds fewer cores.
func mpirunCommand(n int) []string {
	return []string{mpirun, "--oversubscribe", "-np", strconv.Itoa(n)}
}

func openMPI(_ *place, n int, flags, program []string) []string {
	return append(mpirunCommand(n), rdzvExec(flags, program)...)
}

func hydra(_ *place, n int, flags, program []string) []string {
	return append([]string{"mpiexec.hydra", "-n", strconv.Itoa(n)}, rdzvExec(flags, program)...)
}

// srun may start more tasks than the host has cores, and prints nothing when a task fails.
func srun(p *place, n int, flags, program []string) []string {
	line := []string{"on", "1", "srun", "--quiet", "--overcommit", "-n", strconv.Itoa(n)}
	return p.ownCluster().slurm(append(line, rdzvExec(flags, program)...)...)
}
