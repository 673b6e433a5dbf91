package options

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/internal/spelling"
	"rdzv/rdzv/agent"
)

// placement are the flags about where this agent is in its job.
type placement struct {
	launcher string
	job      string
	nodes    int
	minNodes int // of --nodes MIN:MAX; 0 if it has one number
	nodeRank int
	procs    string // --nproc-per-node, as envmap.ProcsPerNode reads it; "" is the default
}

func (p *placement) rows() []flags.Row {
	return []flags.Row{
		flags.Flag("--launcher NAME", "use this launcher (detected)", &p.launcher).
			Of(envmap.Choices()...),
		flags.Flag("--nodes N|MIN:MAX", "number of nodes of a job without a launcher (1); with "+
			"MIN:MAX it may vary, under srun too", (*nodesValue)(p)),
		flags.Flag("--node-rank N", "rank of this node in a job without a launcher (by host name)",
			&p.nodeRank),
		flags.Flag("--nproc-per-node N", "workers per agent: a number; gpu, xpu, npu, hpu or cpu "+
			"for one per device; or auto (one per GPU if PROGRAM is python and there is no "+
			"launcher, otherwise 1)",
			&p.procs).Of("gpu", "cpu", "auto", "xpu", "npu", "hpu"),
		flags.Flag("--job NAME", "name of the job, the same on all agents (generated)", &p.job),
	}
}

func (p *placement) check(c command, given *pflag.FlagSet) error {
	return flags.Join(
		CheckLauncher(p.launcher),
		c.reject(given.Changed("nodes") && p.nodes == 0, "nodes", p.nodes,
			fmt.Sprintf("must be 1 to %d", envmap.MaxTasks)))
}

func (p *placement) set(c *agent.Config, given *pflag.FlagSet) {
	c.Launcher, c.Job, c.ProcsPerNode = envmap.Launcher(p.launcher), p.job, p.procs
	c.Nodes, c.MinNodes = p.nodes, p.minNodes
	if given.Changed("node-rank") {
		c.NodeRank = &p.nodeRank
	}
}

// CheckLauncher suggests the launcher that was probably meant.
func CheckLauncher(name string) error {
	if name == "" || slices.Contains(envmap.Choices(), name) {
		return nil
	}
	_, err := envmap.Detect(nil, envmap.Launcher(name))
	near := cmp.Or(map[string]string{
		"ompi": "openmpi", "open-mpi": "openmpi", "mpirun": "openmpi", "srun": "slurm",
		"sbatch": "slurm", "mpiexec": "mpich", "impi": "intelmpi", "k8s": "kubernetes",
		"trainer": "kubeflow", "pytorch": "torchrun",
	}[strings.ToLower(name)], spelling.Nearest(strings.ToLower(name), envmap.Choices()))
	if near == "" {
		return err
	}
	return hint.With(err, "did you mean --launcher "+near+"?")
}

// nodesValue is the value of --nodes: a number, or MIN:MAX.
type nodesValue placement

func (n *nodesValue) Set(text string) error {
	least, most, varies := strings.Cut(text, ":")
	if !varies {
		most = least
	}
	from, badMin := strconv.Atoi(least)
	to, badMax := strconv.Atoi(most)
	if badMin != nil || badMax != nil || varies && (from < 1 || from > to) {
		return errors.New("not a number, or MIN:MAX")
	}
	if n.minNodes, n.nodes = 0, to; from != to {
		n.minNodes = from
	}
	return nil
}

func (n *nodesValue) String() string {
	if n.minNodes == 0 {
		return strconv.Itoa(n.nodes)
	}
	return fmt.Sprintf("%d:%d", n.minNodes, n.nodes)
}

// Type is that of a flag, for messages about a value that cannot be read.
func (n *nodesValue) Type() string { return "nodes" }
