package integration

import (
	"slices"
	"strings"
	"testing"
)

// startOnHosts starts a command line under a launcher, with two tasks on each of two hosts.
var startOnHosts = map[string]func(p *clusterPlace, line []string) *process{
	"openmpi": func(p *clusterPlace, line []string) *process {
		args := strings.Fields("--host node1:2,node2:2 -np 4")
		return p.on(1, p.openMPI(append(args, line...)...)...)
	},
	"hydra": func(p *clusterPlace, line []string) *process {
		args := strings.Fields("-hosts node1,node2 -ppn 2 -np 4")
		return p.on(1, p.hydra(append(args, line...)...)...)
	},
	"slurm": func(p *clusterPlace, line []string) *process {
		args := strings.Fields("srun -O -N2 -n4 --ntasks-per-node=2")
		return p.slurm(1, append(args, line...)...)
	},
}

// Jobs of one user on the same hosts at the same time do not affect one another. A script under one
// launcher may run one job after another, even if its ranks leave each of them at different times.
func TestSeveralJobsOnHosts(t *testing.T) {
	c := newCluster(t, 2, "--docker")
	c.startSlurm(1, 2)
	for launcher := range startOnHosts {
		t.Run("concurrent/"+launcher, func(t *testing.T) { c.newPlace(t).concurrentJobs(launcher) })
		t.Run("consecutive/"+launcher, func(t *testing.T) { c.newPlace(t).consecutiveJobs(launcher) })
	}
	t.Run("consecutiveOneFails", func(t *testing.T) { c.newPlace(t).secondJobFails("openmpi") })
}

func (p *clusterPlace) concurrentJobs(launcher string) {
	names := []string{"one", "two", "three"}
	var jobs []*process
	for _, name := range names {
		line := rdzvExec(joinSoon, peer(p.dir(name)))
		jobs = append(jobs, startOnHosts[launcher](p, line))
	}
	runs := map[string]bool{}
	for i, job := range jobs {
		job.checkCode(0)
		all := records(p.t, p.dir(names[i]), 4)
		checkLayout(p.t, all, make(layout, 4))
		runs[all[0].Env["RDZV_RUN_ID"]] = true
	}
	if len(runs) != len(jobs) {
		p.t.Errorf("%d jobs have %d values of RDZV_RUN_ID, want different ones", len(jobs), len(runs))
	}
}

// consecutiveJobs runs three jobs under one launcher. Rank 1 leaves each a second after the others.
func (p *clusterPlace) consecutiveJobs(launcher string) {
	script := `rdzv=$1 self=$2; shift 2
		prog='"$0" peer "$1" && if [ $RANK = 1 ]; then exec sleep 1; fi'
		for dir; do
			"$rdzv" exec --join-timeout 20s -- sh -c "$prog" "$self" "$dir" || exit
		done`
	dirs := []string{p.dir("one"), p.dir("two"), p.dir("three")}
	line := slices.Concat([]string{"sh", "-c", script, "sh", *rdzvBin, self}, dirs)
	startOnHosts[launcher](p, line).checkCode(0)
	for _, dir := range dirs {
		checkLayout(p.t, records(p.t, dir, 4), make(layout, 4))
	}
}

// secondJobFails runs three jobs of which the second fails on one rank. The third succeeds.
func (p *clusterPlace) secondJobFails(launcher string) {
	script := `rdzv=$1 self=$2
		"$rdzv" exec --join-timeout 20s -- "$self" peer "$3" || exit 1
		"$rdzv" exec --join-timeout 20s -- "$self" worker exit "$4" 2 7
		echo "exit code $? of the second job"
		exec "$rdzv" exec --join-timeout 20s -- "$self" peer "$5"`
	one, two, three := p.dir("one"), p.dir("two"), p.dir("three")
	line := []string{"sh", "-c", script, "sh", *rdzvBin, self, one, two, three}
	job := startOnHosts[launcher](p, line)
	job.checkCode(0)
	if n := len(job.linesWith("exit code 7 of the second job")); n != 4 {
		p.t.Errorf("%d agents of the second job ended with exit code 7, want all 4", n)
	}
	for _, dir := range []string{one, three} {
		checkLayout(p.t, records(p.t, dir, 4), make(layout, 4))
	}
	checkNumberOfWorkers(p.t, two, 4)
}
