package integration

import (
	"slices"
	"strings"
	"testing"
)

// A batch script without srun runs one agent: rdzv asks whether srun was forgotten, unless the job
// has nothing else to run it on.
func TestBatchWithoutSrun(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	c.startSlurm(1, 2)
	for name, k := range map[string]struct {
		options, launcher, flags []string
		workers                  int
		says                     string
	}{
		"two nodes": {
			[]string{"-N2", "-n4"}, nil, nil, 1,
			"warning: running 1 process; this Slurm job has 4 tasks on 2 nodes",
		},
		"two nodes, tasks per node": {
			[]string{"-N2", "--ntasks-per-node=2"}, nil, []string{"--nproc-per-node", "2"}, 2,
			"warning: running 2 processes; this Slurm job has 4 tasks on 2 nodes",
		},
		"two nodes, no tasks": {
			[]string{"-N2"}, nil, nil, 1,
			"warning: running 1 process; this Slurm job has 2 nodes",
		},
		"one task": {[]string{"-N1", "-n1"}, nil, []string{"--nproc-per-node", "2"}, 2, ""},
		// -q omits the line about ranks and nodes, not the warning.
		"with srun": {[]string{"-N2", "-n4"}, []string{"srun"}, []string{"-q"}, 4, ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			p := c.newPlace(t)
			line := rdzvExec(k.flags, worker("record", p.dir("job")))
			p.batch(k.options, slices.Concat(k.launcher, line)...).checkCode(0)
			records(t, p.dir("job"), k.workers)
			want := ""
			if k.says != "" {
				want = "rdzv: " + k.says + ": did you mean \"srun rdzv exec ...\"?\n"
			}
			if output := timeOfLine.ReplaceAllString(p.batchOutput(), "rdzv: "); output != want {
				t.Errorf("the script printed %q, want %q", output, want)
			}
		})
	}
}
