package options

import (
	"fmt"
	"strings"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/envmap"
	"rdzv/rdzv/agent"
)

// environment are the flags about the environment of workers.
type environment struct {
	masterPort int
	device     string
	bind       string
	assign     []string // of --set
	export     []string
	exportFile string
	as         string
	chdir      string
}

func (e *environment) rows() []flags.Row {
	return []flags.Row{
		flags.Flag("--master-port PORT", "MASTER_PORT (a free port)", &e.masterPort),
		flags.Flag("--device MODE", "how a worker gets its device: index, mask, local-rank "+
			"or virtual-local-rank (index)", &e.device).
			Of(envmap.DeviceModes()...),
		flags.Flag("--bind MODE", "numa: bind each worker to the NUMA node of its device, or to its "+
			"share of the NUMA nodes (none)", &e.bind),
		flags.Flag("--set NAME=TEMPLATE", "also set NAME; repeatable (one per line in RDZV_SET)",
			&e.assign),
		flags.Flag("--export NAME", "copy this variable from rank 0's agent to all workers, also "+
			"NAME=VALUE or PREFIX*; comma-separated, repeatable; @FILE: the NAME=VALUE lines of FILE, "+
			"on rank 0's node", (*exportValue)(e)),
		flags.Flag("--as openmpi", "also set OMPI_COMM_WORLD_RANK and similar variables, as "+
			"mpirun does", &e.as),
	}
}

// directory is the flag about the directory of workers.
func (e *environment) directory() flags.Row {
	return flags.Flag("--chdir DIR", "run PROGRAM in DIR (the current directory)", &e.chdir)
}

func (e *environment) check(c command) error {
	return c.reject(e.as != "" && e.as != "openmpi", "as", e.as, `must be "openmpi"`)
}

func (e *environment) set(c *agent.Config) {
	c.MasterPort, c.Device, c.Bind = e.masterPort, envmap.DeviceMode(e.device), envmap.BindMode(e.bind)
	c.Set, c.AsOpenMPI, c.Dir = e.assign, e.as == "openmpi", e.chdir
	c.Export, c.ExportFile = e.export, e.exportFile
}

// exportValue is the value of --export: variables, or @FILE, a file of them.
type exportValue environment

func (e *exportValue) Set(text string) error {
	file, isFile := strings.CutPrefix(text, "@")
	switch {
	case !isFile:
		e.export = append(e.export, text)
	case e.exportFile != "":
		return fmt.Errorf("there can be one file, and %s is given", e.exportFile)
	default:
		e.exportFile = file
	}
	return nil
}

func (e *exportValue) String() string {
	if e.exportFile != "" {
		return "@" + e.exportFile
	}
	return strings.Join(e.export, " ")
}

// Type is that of a flag that takes one value from each line of its variable.
func (e *exportValue) Type() string { return "stringArray" }
