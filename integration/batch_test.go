package integration

import (
	"strings"
	"testing"
)

// A cancelCase is a batch job that is cancelled.
type cancelCase struct {
	name     string
	script   []string // before rdzv exec
	workers  int
	flags    []string
	scancel  []string // its options
	received string   // by each worker
	message  string   // of rdzv
}

// batchScript is a script with a command after the job, as scripts of users have.
func batchScript(line ...string) []string {
	return append([]string{"sh", "-c", `"$@"; echo "$? is the exit code of the job"`, "sh"}, line...)
}

func cancelCases() []cancelCase {
	two := []string{"--nproc-per-node", "2"}
	usr1 := []string{"--signal=USR1"}
	return []cancelCase{
		{"srun", batchScript("srun"), workersPerJob, nil, nil, "SIGTERM", "received SIGTERM"},
		{"direct", batchScript(), 2, two, nil, "SIGTERM", "received SIGTERM"},
		{"exec", nil, 2, two, nil, "SIGTERM", "received SIGTERM"},
		{"mpirun", batchScript(mpirun), workersPerJob, nil, nil, "SIGTERM", "received SIGTERM"},

		// Steps receive the signal, the script does not.
		{"srun, USR1", batchScript("srun"), workersPerJob, nil, usr1, "SIGUSR1", ""},
		// Only the script receives the signal. It ends, and rdzv continues without a parent.
		{"direct, USR1 to the script", batchScript(), 2, two, append(usr1, "--batch"), "SIGTERM",
			"slurmstepd ("},
	}
}

// scancel ends a batch job on all nodes, and each worker receives one signal.
func TestCancelledBatch(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	c.startSlurm(1, 2)
	for _, k := range cancelCases() {
		t.Run(strings.ReplaceAll(k.name, " ", "_"), func(t *testing.T) { c.newPlace(t).cancel(k) })
	}
}

func (p *clusterPlace) cancel(k cancelCase) {
	line := rdzvExec(k.flags, worker("signals", p.dir("job")))
	batch := p.batch([]string{"-N2", "-n4", "--ntasks-per-node=2"}, append(k.script, line...)...)
	workers := records(p.t, p.dir("job"), k.workers)
	id, received := workers[0].Env["SLURM_JOB_ID"], []string{k.received}
	p.scancel(id, k.scancel...)
	if strings.HasPrefix(k.received, "SIGUSR") { // which does not end the job
		p.scancel(id)
		received[0] += " SIGTERM"
	}
	if k.name == "mpirun" && openMPI5 { // it repeats the signal, and soon kills the agents
		received = append(received, k.received+" "+k.received)
		defer p.removeFiles()
	}
	batch.code() // that of the script, which may have ended before the job
	for _, w := range workers {
		w.checkSignals(p.t, p.dir("job"), received...)
	}
	printed := func() bool { return strings.Contains(p.batchOutput(), k.message) }
	if !eventually(waitLimit, printed) { // the agents may end after the script
		p.t.Errorf("the script printed %q, want %q in it", p.batchOutput(), k.message)
	}
}

func (p *clusterPlace) scancel(id string, options ...string) {
	p.t.Helper()
	p.slurm(1, append(append([]string{"scancel"}, options...), id)...).checkCode(0)
}
