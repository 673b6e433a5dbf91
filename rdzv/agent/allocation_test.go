package agent

import (
	"strings"
	"testing"
	"testing/fstest"

	"rdzv/envmap"
)

// A single agent in a larger allocation is reported, unless the user has said that it is meant.
func TestCheckAllocation(t *testing.T) {
	root := fstest.MapFS{"nodes": {Data: []byte("node1\nnode1\nnode2\n")}}
	const four = "SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_JOB_NUM_NODES="
	const one, srun = "warning: running 1 process; this ", `: did you mean "srun rdzv exec ..."?`
	for _, row := range []struct {
		name, environ string
		config        Config
		want          string
	}{
		{"no manager", "", Config{}, ""},
		{"two nodes", four + "2", Config{}, one + "Slurm job has 4 tasks on 2 nodes" + srun},
		{"one node", four + "1", Config{}, one + "Slurm job has 4 tasks on 1 node" + srun},
		{"no tasks", "SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2", Config{},
			one + "Slurm job has 2 nodes" + srun},
		{"two workers", four + "2", Config{ProcsPerNode: "2"},
			"warning: running 2 processes; this Slurm job has 4 tasks on 2 nodes" + srun},
		{"a worker per task", four + "1", Config{ProcsPerNode: "4"}, ""},
		{"one task", "SLURM_JOB_ID=7 SLURM_NTASKS=1 SLURM_JOB_NUM_NODES=1",
			Config{ProcsPerNode: "4"}, ""},
		{"--nodes", four + "2", Config{Nodes: 1}, ""},
		{"--launcher", four + "2", Config{Launcher: envmap.None}, ""},
		{"a task", four + "2 SLURM_PROCID=0 SLURM_STEP_ID=0", Config{}, ""},
		{"PBS", "PBS_NODEFILE=/nodes", Config{},
			one + `PBS job has 2 nodes: did you mean "mpirun rdzv exec ..."?`},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := row.config
			c.Environ, c.Program, c.Root = strings.Fields(row.environ), []string{"/bin/true"}, root
			l, err := Plan(c)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := checkAllocation(l); err != nil {
				got = err.Error()
			}
			if got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}
