package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A clusterPlace is the place of a test whose commands run on the hosts of a cluster. Tests that
// follow one another on a cluster have a place each.
type clusterPlace struct {
	*place
	cluster *cluster
}

func (c *cluster) newPlace(t *testing.T) *clusterPlace {
	t.Helper()
	return &clusterPlace{newPlace(t), c}
}

// on starts a command on a host.
func (p *clusterPlace) on(host int, argv ...string) *process {
	p.t.Helper()
	return p.start(p.cluster.on(host, argv...)...)
}

// openMPI is a command line of Open MPI's mpirun, for one of the hosts. The arguments contain the
// hosts and their slots. With --oversubscribe, Open MPI 5 would place all ranks on the first host;
// --bind-to none allows more ranks than cores too.
func (p *clusterPlace) openMPI(args ...string) []string {
	shell := p.cluster.remoteShell(p.place)
	return append([]string{mpirun, "--bind-to", "none", "--mca", "plm_rsh_agent", shell}, args...)
}

// mpirunCrashes is why a test is skipped if unlessMpirunCrashed returns nil. CI expects it.
const mpirunCrashes = "mpirun crashes without rdzv too"

// unlessMpirunCrashed returns a job of mpirun, or nil if mpirun crashed in it and crashes by itself
// too: with the arguments alone, which have `true` in place of rdzv. Then there is nothing to test.
func (p *clusterPlace) unlessMpirunCrashed(job *process, alone ...string) *process {
	p.t.Helper()
	const crashed = 128 + int(syscall.SIGSEGV)
	if job.code() != crashed {
		return job
	}
	without := p.on(1, p.openMPI(alone...)...)
	if without.code() != crashed {
		return job
	}
	p.t.Logf("without rdzv, %q crashes too (SIGSEGV)", without.argv)
	return nil
}

// hydra is the same for MPICH's mpiexec.
func (p *clusterPlace) hydra(args ...string) []string {
	shell := p.cluster.remoteShell(p.place)
	return append([]string{"mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", shell}, args...)
}

// slurm starts a command of Slurm on a host.
func (p *clusterPlace) slurm(host int, argv ...string) *process {
	p.t.Helper()
	return p.start(append(p.cluster.slurm("on", strconv.Itoa(host)), argv...)...)
}

// batch starts a batch script with options of sbatch, which waits for its end; see batchOutput.
func (p *clusterPlace) batch(options []string, script ...string) *process {
	p.t.Helper()
	file := filepath.Join(p.root, "batch")
	if err := os.WriteFile(file, []byte("#!/bin/sh\nexec "+quoted(script)+"\n"),
		0o700); err != nil {
		p.t.Fatal(err)
	}
	sbatch := []string{"sbatch", "-W", "-o", filepath.Join(p.root, "batch.out")}
	return p.slurm(1, slices.Concat(sbatch, options, []string{file})...)
}

// batchOutput is the output of the batch script.
func (p *clusterPlace) batchOutput() string {
	text, _ := os.ReadFile(filepath.Join(p.root, "batch.out"))
	return string(text)
}

func quoted(words []string) string {
	var list []string
	for _, w := range words {
		list = append(list, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	return strings.Join(list, " ")
}

// joinSoon makes agents that do not find each other end soon, and report what they tried.
var joinSoon = []string{"--join-timeout", "20s"}

// exec is rdzv exec with flags and a peer that leaves its record in the place's directory "job".
func (p *clusterPlace) exec(flags ...string) []string {
	return rdzvExec(append(slices.Clone(joinSoon), flags...), peer(p.dir("job")))
}
