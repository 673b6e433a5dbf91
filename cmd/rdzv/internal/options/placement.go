package options

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/envmap"
	"rdzv/rdzv/agent"
)

// placement are the flags about where this agent is in its job.
func placement(c *agent.Config) flags.Group {
	return flags.Group{
		Title: "Placement, as far as the launcher does not determine it",
		Rows: []flags.Row{
			flags.Flag("--launcher NAME", "use this launcher (detected)", (*string)(&c.Launcher)).
				Of(envmap.Choices()...),
			flags.Flag("--nodes N|MIN:MAX", "number of nodes of a job without a launcher (1); with "+
				"MIN:MAX it may vary, under srun too", nodes{c}),
			flags.Flag("--node-rank N",
				"rank of this node in a job without a launcher (by host name)", nodeRank{c}),
			flags.Flag("--nproc-per-node N", "workers per agent: a number; gpu, xpu, npu, hpu or cpu "+
				"for one per device; or auto (one per GPU if PROGRAM is python and there is no "+
				"launcher, otherwise 1)",
				&c.ProcsPerNode).Of("gpu", "cpu", "auto", "xpu", "npu", "hpu"),
			flags.Flag("--job NAME", "name of the job, the same on all agents (generated)", &c.Job),
		},
	}
}

// nodes is the value of --nodes: a number, or MIN:MAX.
type nodes struct{ *agent.Config }

func (n nodes) Set(text string) error {
	least, most, varies := strings.Cut(text, ":")
	if !varies {
		most = least
	}
	from, badMin := strconv.Atoi(least)
	to, badMax := strconv.Atoi(most)
	switch {
	case badMin != nil || badMax != nil || varies && (from < 1 || from > to):
		return errors.New("must be a whole number, or MIN:MAX with MIN from 1 to MAX")
	case to == 0: // in an agent.Config it is the default
		return &flags.Refused{Value: to, Reason: fmt.Sprintf("must be 1 to %d", envmap.MaxTasks)}
	}
	if n.MinNodes, n.Nodes = 0, to; from != to {
		n.MinNodes = from
	}
	return nil
}

func (n nodes) String() string {
	if n.MinNodes == 0 {
		return strconv.Itoa(n.Nodes)
	}
	return fmt.Sprintf("%d:%d", n.MinNodes, n.Nodes)
}

func (n nodes) Type() string { return "nodes" }

// nodeRank is the value of --node-rank, which may be unknown.
type nodeRank struct{ *agent.Config }

func (r nodeRank) Set(text string) error {
	rank, err := strconv.ParseInt(text, 0, 64) // as pflag reads a number
	if err != nil {
		return err
	}
	r.NodeRank = new(int(rank))
	return nil
}

func (r nodeRank) String() string {
	if r.NodeRank == nil {
		return ""
	}
	return strconv.Itoa(*r.NodeRank)
}

// Type is that of a number, for messages about one that cannot be read.
func (r nodeRank) Type() string { return "int" }
