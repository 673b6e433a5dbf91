package agent

import (
	"slices"
	"strings"
	"testing"
)

// The number of nodes may vary without a launcher and under srun with one agent for each node.
func TestNodeRangeOfLaunchers(t *testing.T) {
	slurm := func(local string) []string {
		return []string{
			"SLURM_PROCID=0", "SLURM_NTASKS=3", "SLURM_LOCALID=0", "SLURM_NODEID=0", "SLURM_STEP_ID=0",
			"SLURM_JOB_ID=7", "SLURM_STEP_NUM_NODES=3", "SLURM_STEP_TASKS_PER_NODE=" + local,
			"SLURM_STEP_NUM_TASKS=3", "SLURM_STEP_NODELIST=n[1-3]", "SLURM_NNODES=3",
		}
	}
	mpirun := []string{
		"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=3", "OMPI_COMM_WORLD_LOCAL_RANK=0",
		"OMPI_COMM_WORLD_LOCAL_SIZE=1", "PMIX_RANK=0",
	}
	for name, test := range map[string]struct {
		environ []string
		min     int
		max     int
		store   string
		want    string // error
	}{
		"no launcher":          {nil, 2, 3, "", ""},
		"half":                 {nil, 2, 4, "", "could form a second job"},
		"half, store":          {nil, 2, 4, "node1", ""},
		"srun":                 {slurm("1(x3)"), 1, 3, "", ""},
		"srun, several agents": {slurm("3"), 2, 3, "", "3 tasks on this node, and they do not share an agent"},
		"srun, another number": {slurm("1(x3)"), 2, 4, "", "--nodes 2:4: srun has started tasks on 3 nodes"},
		"mpirun":               {mpirun, 2, 3, "", "openmpi4 ends the job when it loses a node"},
		"Indexed Job":          {[]string{"JOB_COMPLETION_INDEX=0"}, 2, 3, "", "gives each node its rank"},
		"more than MAX":        {nil, 4, 3, "", "--nodes MIN:MAX 4: must be 1 to 3"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := Plan(Config{
				Environ: append(test.environ, "PATH=/bin:/usr/bin"), Nodes: test.max, MinNodes: test.min,
				Store: test.store, Program: []string{"true"},
			})
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v, want %q", err, test.want)
				}
				return
			}
			if err != nil || l.Agents != test.max || !l.layout().MayRunRank0() || len(l.IgnoredFlags()) > 0 {
				t.Fatalf("%+v, %v, want %d agents", l, err, test.max)
			}
			_, open := l.identities().Preview()
			if !slices.Contains(open, "WORLD_SIZE") || !slices.Contains(open, "GROUP_WORLD_SIZE") {
				t.Errorf("not known are only %q", open)
			}
		})
	}
}
