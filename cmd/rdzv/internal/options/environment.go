package options

import (
	"errors"
	"fmt"
	"strings"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/envmap"
	"rdzv/rdzv/agent"
)

// environment are the flags about the environment and the directory of workers.
func environment(c *agent.Config) flags.Group {
	return flags.Group{Title: "Environment of PROGRAM", Note: templateNote, Rows: []flags.Row{
		flags.Flag("--master-port PORT", "MASTER_PORT (a free port)", &c.MasterPort),
		flags.Flag("--device MODE", "how a worker gets its device: index, mask, local-rank "+
			"or virtual-local-rank (index)", (*string)(&c.Device)).
			Of(envmap.DeviceModes()...),
		flags.Flag("--bind MODE", "numa: bind each worker to the NUMA node of its device, or to its "+
			"share of the NUMA nodes (none)", (*string)(&c.Bind)),
		flags.Flag("--set NAME=TEMPLATE", "also set NAME; repeatable (one per line in RDZV_SET)",
			&c.Set),
		flags.Flag("--export NAME", "copy this variable from rank 0's agent to all workers, also "+
			"NAME=VALUE or PREFIX*; comma-separated, repeatable; @FILE: the NAME=VALUE lines of FILE, "+
			"on rank 0's node", export{c}),
		flags.Flag("--as openmpi", "also set OMPI_COMM_WORLD_RANK and similar variables, as "+
			"mpirun does", (*asLauncher)(&c.AsOpenMPI)),
		flags.Flag("--chdir DIR", "run PROGRAM in DIR (the current directory)", &c.Dir),
	}}
}

const templateNote = `    A TEMPLATE can contain {rank} {world_size} {local_rank} {local_world_size}
    {node_rank} {nodes} {node_addr} {master_addr} {master_port} {device}
    {ifname}.
`

// export is the value of --export: variables, or @FILE, a file of them.
type export struct{ *agent.Config }

func (e export) Set(text string) error {
	file, isFile := strings.CutPrefix(text, "@")
	switch {
	case !isFile:
		e.Export = append(e.Export, text)
	case e.ExportFile != "":
		return fmt.Errorf("there can be one file, and %s is given", e.ExportFile)
	default:
		e.ExportFile = file
	}
	return nil
}

func (e export) String() string {
	if e.ExportFile != "" {
		return "@" + e.ExportFile
	}
	return strings.Join(e.Export, " ")
}

// Type is that of a flag that takes one value from each line of its variable.
func (e export) Type() string { return "stringArray" }

// asLauncher is the value of --as: whether it is openmpi.
type asLauncher bool

func (a *asLauncher) Set(text string) error {
	if text != "openmpi" {
		return errors.New(`must be "openmpi"`)
	}
	*a = true
	return nil
}

func (a *asLauncher) String() string {
	if *a {
		return "openmpi"
	}
	return ""
}

func (a *asLauncher) Type() string { return "launcher" }
