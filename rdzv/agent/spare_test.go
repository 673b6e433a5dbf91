package agent

import (
	"strings"
	"testing"

	"rdzv/rdzv"
	"rdzv/rdzv/restart"
)

// Spares are possible without a launcher and under srun with one task for each node.
func TestSparesOfLaunchers(t *testing.T) {
	slurm := func(local string) []string {
		return []string{
			"SLURM_PROCID=0", "SLURM_NTASKS=3", "SLURM_LOCALID=0", "SLURM_NODEID=0", "SLURM_STEP_ID=0",
			"SLURM_JOB_ID=7", "SLURM_STEP_NUM_NODES=3", "SLURM_STEP_TASKS_PER_NODE=" + local,
			"SLURM_STEP_NUM_TASKS=3", "SLURM_STEP_NODELIST=n[1-3]", "SLURM_NNODES=3",
		}
	}
	for name, test := range map[string]struct {
		environ []string
		nodes   int
		spares  int
		agents  int
		want    string // error
	}{
		"no launcher":      {nil, 3, 2, 5, ""},
		"no nodes":         {nil, 0, 1, 0, "the number of nodes is not given"},
		"srun":             {slurm("1(x3)"), 0, 1, 3, ""},
		"srun, several":    {slurm("3"), 0, 1, 0, "srun has started 3 tasks on this node"},
		"srun, only these": {slurm("1(x3)"), 0, 3, 0, "cannot keep 3 spares: the job has 3 nodes"},
		"mpirun": {[]string{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=3",
			"OMPI_COMM_WORLD_LOCAL_RANK=0", "OMPI_COMM_WORLD_LOCAL_SIZE=1", "PMIX_RANK=0"}, 0, 1, 0,
			"ends the job when it loses a node"},
		"Indexed Job": {[]string{"JOB_COMPLETION_INDEX=0"}, 3, 1, 0, "gives each node its rank"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := Plan(Config{
				Environ: append(test.environ, "PATH=/bin:/usr/bin"), Nodes: test.nodes, Rules: rdzv.Rules{Spares: test.spares, Restarts: restart.Policy{Max: 1}},
				Program: []string{"true"},
			})
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v, want %q", err, test.want)
				}
				return
			}
			if err != nil || l.Agents != test.agents {
				t.Errorf("%+v, %v, want %d agents", l, err, test.agents)
			}
		})
	}
}
