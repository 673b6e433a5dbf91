package envmap

import (
	"io/fs"
	"strings"
)

// Allocation has the tasks and nodes that a resource manager has reserved for the job to which this
// process belongs. Package agent warns if a job of one agent does not use all of it.
type Allocation struct {
	Manager string // "Slurm", "PBS", "LSF" or "Grid Engine"; "" without one
	Tasks   int    // Unknown if the job does not say
	Nodes   int
	Host    string // the first of the nodes; "" if the job does not say
	Command string // starts a program on all of it
}

// ReadAllocation reads the allocation from the environment, and from the file that it names. Slurm:
// measured, 22.05 and 24.11. PBS: documented; PBS_NODEFILE has a line per slot, which does not say
// how many processes are meant. LSF: documented; LSB_MCPU_HOSTS has the slots after each host. Grid
// Engine: documented (qsub(1), ge_pe(5)); PE_HOSTFILE has a line per host.
func ReadAllocation(env Env, root fs.FS) Allocation {
	a := Allocation{Tasks: Unknown, Nodes: Unknown}
	switch {
	case env.first("SLURM_JOB_ID", "SLURM_JOBID") != "":
		a.Manager, a.Command = "Slurm", "srun"
		a.Tasks = env.number("SLURM_NTASKS", "SLURM_NPROCS")
		a.Nodes = env.number("SLURM_JOB_NUM_NODES", "SLURM_NNODES")
	case env.has("PBS_NODEFILE"):
		a.Manager, a.Command = "PBS", "mpirun"
		if hosts := wordsOf(root, env["PBS_NODEFILE"]); len(hosts) > 0 {
			a.Nodes, a.Host = countDistinct(hosts), hosts[0]
		}
	case env.has("LSB_MCPU_HOSTS"):
		a.Manager, a.Command = "LSF", "mpirun"
		if hosts := strings.Fields(env["LSB_MCPU_HOSTS"]); len(hosts) > 1 {
			a.Nodes, a.Host = len(hosts)/2, hosts[0]
		}
	case env.has("PE_HOSTFILE"):
		a.Manager, a.Command = "Grid Engine", "mpirun"
		a.Nodes = env.number("NHOSTS")
		if hosts := wordsOf(root, env["PE_HOSTFILE"]); len(hosts) > 0 {
			a.Host = hosts[0]
		}
	}
	return a
}

// wordsOf returns the words of a file, none if it cannot be read.
func wordsOf(root fs.FS, path string) []string {
	text, _ := fs.ReadFile(root, strings.TrimPrefix(path, "/"))
	return strings.Fields(string(text))
}

// number returns the number in the first of names that is set, Unknown if it is not a number.
func (e Env) number(names ...string) int {
	name := e.first(names...)
	n, err := parseNumber(name, e[name])
	if err != nil {
		return Unknown
	}
	return n
}

func countDistinct(words []string) int {
	seen := map[string]bool{}
	for _, word := range words {
		seen[word] = true
	}
	return len(seen)
}
