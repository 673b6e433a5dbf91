package integration

import (
	"strconv"
	"testing"
)

// A launcher starts rdzv exec on one host, so that a job has n workers of one program.
type launcher struct {
	name string
	// place makes a place in which the launcher works.
	place func(t *testing.T) *place
	// line is the command: n workers of prog, flags being those of rdzv exec.
	line func(p *place, n int, flags, prog []string) []string
	// agents says how many rdzv exec that makes.
	agents func(n int) int
	// interrupts is how often one types Ctrl-C to end a job.
	interrupts int
	// kills says that the launcher, told to end, kills its ranks outright: nobody is left to tidy up.
	kills bool
	// ignores is the set of signals that its ranks ignore: Hydra's are never stopped by a terminal (SIGTSTP).
	ignores string
}

var launchers = []launcher{
	{"byhand", newPlace, direct, one, 1, false, none},
	{"openmpi", newPlace, openMPI, each, 1, false, none},
	{"hydra", newPlace, hydra, each, 1, false, "0000000000100000"},
	{"srun", newSlurm, srun, each, 2, true, none},
}

func one(int) int    { return 1 }
func each(n int) int { return n }

// forEachLauncher tells the same story under every launcher.
func forEachLauncher(t *testing.T, scenario func(t *testing.T, l launcher)) {
	for _, l := range launchers {
		t.Run(l.name, func(t *testing.T) { scenario(t, l) })
	}
}

func rdzvExec(flags, prog []string) []string {
	line := append([]string{*rdzvBin, "exec"}, flags...)
	return append(append(line, "--"), prog...)
}

func direct(_ *place, n int, flags, prog []string) []string {
	return rdzvExec(append([]string{"--nproc-per-node", strconv.Itoa(n)}, flags...), prog)
}

// mpirunCommand starts n of what follows. Open MPI counts cores and wants to be told that more are meant.
func mpirunCommand(n int) []string {
	return []string{mpirun, "--oversubscribe", "-np", strconv.Itoa(n)}
}

func openMPI(_ *place, n int, flags, prog []string) []string {
	return append(mpirunCommand(n), rdzvExec(flags, prog)...)
}

func hydra(_ *place, n int, flags, prog []string) []string {
	return append([]string{"mpiexec.hydra", "-n", strconv.Itoa(n)}, rdzvExec(flags, prog)...)
}

// srun has more tasks than the host has cores, and says nothing of its own when one of them fails.
func srun(p *place, n int, flags, prog []string) []string {
	line := []string{"on", "1", "srun", "--quiet", "--overcommit", "-n", strconv.Itoa(n)}
	return p.cluster().slurm(append(line, rdzvExec(flags, prog)...)...)
}
