package integration

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// What takes Slurm two minutes, in which these tests only wait.
func TestSlowSlurm(t *testing.T) {
	t.Parallel()
	runConcurrently(t, []scenario{
		{"requeued batch", testRequeuedBatch}, {"time limit", testSlurmTimeLimit},
	})
}

// A batch job whose script gets a signal before the time limit saves its state, is put into the
// queue again, and resumes. Here scancel sends what --signal=B:USR1@120 sends.
func testRequeuedBatch(t *testing.T) {
	c := newCluster(t, 2)
	c.startSlurm(1, 2)
	p := c.newPlace(t)
	dir := p.dir("state")
	const script = `cd "$0"; rm -f again
		srun "$@" &
		trap 'kill -USR1 $!' USR1
		until wait; do :; done
		if [ -e again ]; then scontrol requeue "$SLURM_JOB_ID"; fi`
	const program = `[ -z "$SLURM_RESTART_COUNT" ] || { touch "$0/resumed$RANK"; exit; }
		save() { touch "$0/saved$RANK"; [ $RANK != 0 ] || touch "$0/again"; exit 0; }
		trap save USR1
		touch "$0/started$RANK"
		while :; do sleep 1000 & wait; done`
	line := rdzvExec(nil, []string{"sh", "-c", program, dir})
	options := []string{"-N2", "-n4", "--ntasks-per-node=2", "--signal=B:USR1@120", "--requeue",
		"--open-mode=append"}
	batch := p.batch(options, append([]string{"sh", "-c", script, dir}, line...)...)
	await := func(name string) {
		t.Helper()
		for rank := range 4 {
			file := filepath.Join(dir, name+strconv.Itoa(rank))
			exists := func() bool { _, err := os.Stat(file); return err == nil }
			if !eventually(waitLimit, exists) {
				t.Fatalf("there is no %s; the script has printed\n%s", file, p.batchOutput())
			}
		}
	}
	await("started")
	const id = "1" // the only job
	p.scancel(id, "--signal=USR1", "--batch")
	await("saved")
	// Slurm starts it after 2 minutes, because a node refuses what it has ended less than a second
	// before.
	queued := func() bool {
		list := p.slurm(1, "squeue", "-h", "-t", "PENDING", "-o", "job %i")
		<-list.done
		return len(list.linesWith("job "+id)) > 0
	}
	if !eventually(waitLimit, queued) {
		t.Fatalf("the job is not in the queue; its script has printed\n%s", p.batchOutput())
	}
	p.slurm(1, "scontrol", "update", "JobId="+id, "StartTime=now+3").checkCode(0)
	await("resumed")
	batch.checkCode(0)
}
