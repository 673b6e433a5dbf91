package integration

import (
	"strconv"
	"testing"
)

// A launcher starts rdzv exec, for n workers of one program on this machine.
type launcher struct {
	name string
	// line is the command: n workers of prog, flags being those of rdzv exec.
	line func(n int, flags, prog []string) []string
	// agents says how many rdzv exec that makes.
	agents func(n int) int
}

var launchers = []launcher{
	{"byhand", byHand, func(int) int { return 1 }},
	{"openmpi", openMPI, func(n int) int { return n }},
}

func byHand(n int, flags, prog []string) []string {
	return rdzvExec(append([]string{"--nproc-per-node", strconv.Itoa(n)}, flags...), prog)
}

func openMPI(n int, flags, prog []string) []string {
	return append(mpirunLine(n), rdzvExec(flags, prog)...)
}

// mpirunLine starts n of what follows. Open MPI counts cores and wants to be told that more are meant.
func mpirunLine(n int) []string { return []string{mpirun, "--oversubscribe", "-np", strconv.Itoa(n)} }

func rdzvExec(flags, prog []string) []string {
	line := append([]string{*rdzvBin, "exec"}, flags...)
	return append(append(line, "--"), prog...)
}

// underEach tells the same story under every launcher.
func underEach(t *testing.T, story func(t *testing.T, l launcher)) {
	for _, l := range launchers {
		t.Run(l.name, func(t *testing.T) { story(t, l) })
	}
}
