package integration

import (
	"slices"
	"testing"
)

// A job with --max-restarts that ends because something is lost says what to do instead.
func TestNotReplaced(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	const (
		again   = "submit the job again"
		spares  = "rdzv exec --spares N another node takes its place"
		cluster = "with an etcd cluster (--store http://HOST:2379)"
		nothing = "" // mpiexec.hydra kills the other agents at once
	)
	hints := map[string]map[string]string{
		"agent":         {"openmpi": again, "hydra": nothing, "slurm": spares},
		"store's agent": {"direct": cluster, "openmpi": again, "hydra": nothing, "slurm": cluster},
		"daemon":        {"openmpi": again, "hydra": again, "slurm": again},
	}
	if openMPI5 { // its mpirun shows no output any more when it has lost a daemon
		hints["daemon"]["openmpi"] = nothing
	}
	var all []variant
	for _, k := range killCases {
		for _, launcher := range jobLaunchers {
			hint, has := hints[k.name][launcher]
			if !has {
				continue
			}
			run := func(t *testing.T) {
				j := c.runningJob(t, launcher, 2, []string{"--max-restarts", "1", "--peer-timeout", "3s"},
					worker("session", jobDir))
				k.kill(j)
				j.launcherCodes()
				// An mpirun that loses its daemon may send SIGTERM before an agent notices the loss.
				says := func(p *process) bool {
					return len(p.linesWith("hint: ", hint))+len(p.linesWith("received SIGTERM")) > 0
				}
				if hint != nothing && !slices.ContainsFunc(j.commands, says) {
					t.Errorf("no command has printed a hint with %q", hint)
				}
				j.checkNoProcesses()
				j.removeLeftovers()
			}
			of := k.name + ", " + hint // one for each hint
			all = append(all, variant{of, launcher, scenario{k.name + "/" + launcher, run}})
		}
	}
	runConcurrently(t, selected(all))
}
