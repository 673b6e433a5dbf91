package envmap

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestReadAllocation(t *testing.T) {
	root := fstest.MapFS{
		"var/spool/aux/7": {Data: []byte("node1\nnode1\nnode2\nnode2\n")},
		"var/spool/aux/8": {Data: []byte("node1\nnode1\n")},
		"var/spool/pe":    {Data: []byte("node1 4 all.q@node1 UNDEFINED\nnode2 4 all.q@node2 UNDEFINED\n")},
	}
	slurm := func(tasks, nodes int) Allocation { return Allocation{"Slurm", tasks, nodes, "", "srun"} }
	by := func(manager string, nodes int) Allocation {
		host := "node1"
		if nodes == Unknown {
			host = ""
		}
		return Allocation{manager, Unknown, nodes, host, "mpirun"}
	}
	for _, row := range []struct {
		name string
		env  Env
		want Allocation
	}{
		{"none", Env{"PATH": "/bin"}, Allocation{"", Unknown, Unknown, "", ""}},
		{"sbatch", recorded(t, "slurm22-batchbody", 0), slurm(2, 2)},
		{"sbatch, Slurm 24", recorded(t, "slurm2411-batchbody", 0), slurm(4, 2)},
		{"sbatch -N2", ParseEnv(strings.Fields("SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2")),
			slurm(Unknown, 2)},
		{"malformed", Env{"SLURM_JOB_ID": "7", "SLURM_NTASKS": "x"}, slurm(Unknown, Unknown)},
		{"PBS", Env{"PBS_JOBID": "7", "PBS_NODEFILE": "/var/spool/aux/7"}, by("PBS", 2)},
		{"PBS, one node", Env{"PBS_JOBID": "8", "PBS_NODEFILE": "/var/spool/aux/8"}, by("PBS", 1)},
		{"PBS, no file", Env{"PBS_JOBID": "9", "PBS_NODEFILE": "/var/spool/aux/9"}, by("PBS", Unknown)},
		{"LSF", Env{"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "node1 4 node2 2"}, by("LSF", 2)},
		{"LSF, one node", Env{"LSB_JOBID": "8", "LSB_MCPU_HOSTS": "node1 4 "}, by("LSF", 1)},
		{"Grid Engine", Env{"PE_HOSTFILE": "/var/spool/pe", "NHOSTS": "2"}, by("Grid Engine", 2)},
	} {
		if got := ReadAllocation(row.env, root); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}
