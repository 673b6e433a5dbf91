package integration

import (
	"slices"
	"strings"
	"testing"
)

// onTwoHosts are the command lines that start two tasks on each of two hosts. session is a
// directory of the mpirun, which may not share it with another.
var onTwoHosts = map[string]func(p *clusterPlace, session string) []string{
	"openmpi": func(p *clusterPlace, session string) []string {
		args := []string{"--mca", "orte_tmpdir_base", session, "--host", "node1:2,node2:2", "-np",
			"4"}
		return p.cluster.on(1, p.openMPI(args...)...)
	},
	"hydra": func(p *clusterPlace, _ string) []string {
		return p.cluster.on(1, p.hydra("-hosts", "node1,node2", "-ppn", "2", "-np", "4")...)
	},
	"slurm": func(p *clusterPlace, _ string) []string {
		return p.cluster.slurm(strings.Fields("on 1 srun -O -N2 -n4 --ntasks-per-node=2")...)
	},
}

func (p *clusterPlace) startOnTwoHosts(launcher, session string, line []string) *process {
	p.t.Helper()
	return p.start(append(onTwoHosts[launcher](p, p.dir(session)), line...)...)
}

// Jobs of one user on the same hosts at the same time do not affect one another. A script under one
// launcher may run one job after another, even if its ranks leave each of them at different times.
func TestSeveralJobsOnHosts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, "--docker")
	c.startSlurm(1, 2)
	for launcher := range onTwoHosts {
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
		jobs = append(jobs, p.startOnTwoHosts(launcher, "session-"+name, line))
	}
	runs := map[string]bool{}
	for i, job := range jobs {
		job.checkCode(0)
		all := records(p.t, p.dir(names[i]), 4)
		checkLayout(p.t, all, make(layout, 4))
		runs[all[0].Env["RDZV_RUN_ID"]] = true
	}
	if len(runs) != len(jobs) {
		p.t.Errorf("%d jobs have %d values of RDZV_RUN_ID, want different ones", len(jobs),
			len(runs))
	}
}

// consecutiveJobs runs three jobs under one launcher. Rank 1 leaves each a second after the others.
func (p *clusterPlace) consecutiveJobs(launcher string) {
	script := `rdzv=$1 self=$2; shift 2
		program='"$0" peer "$1" && if [ $RANK = 1 ]; then exec sleep 1; fi'
		for dir; do
			"$rdzv" exec --join-timeout 20s -- sh -c "$program" "$self" "$dir" || exit
		done`
	dirs := []string{p.dir("one"), p.dir("two"), p.dir("three")}
	line := slices.Concat([]string{"sh", "-c", script, "sh", *rdzvBin, self}, dirs)
	p.startOnTwoHosts(launcher, "session", line).checkCode(0)
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
	job := p.startOnTwoHosts(launcher, "session", line)
	job.checkCode(0)
	if n := len(job.linesWith("exit code 7 of the second job")); n != 4 {
		p.t.Errorf("%d agents of the second job ended with exit code 7, want all 4", n)
	}
	for _, dir := range []string{one, three} {
		checkLayout(p.t, records(p.t, dir, 4), make(layout, 4))
	}
	checkNumberOfWorkers(p.t, two, 4)
}
