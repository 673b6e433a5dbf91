package options

import (
	"errors"
	"fmt"
	"os"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/starter/hosts"
	"rdzv/envmap"
	"rdzv/internal/hint"
)

// Hosts are the flags about a job that is started from one machine.
type Hosts struct {
	List, File string
	SSH        string
}

// group is the group of these flags.
func (h *Hosts) group() flags.Group {
	return flags.Group{Title: "Starting the job on other hosts, from this one", Rows: []flags.Row{
		flags.Flag("-H, --hosts LIST", "start the job on these hosts by ssh: [USER@]HOST[:WORKERS], "+
			"comma-separated; the first one has rank 0", &h.List),
		flags.Flag("--hostfile FILE", "the same for a host file of Open MPI or MPICH", &h.File),
		flags.Flag("--ssh CMD", "the ssh program, with arguments (ssh)", &h.SSH),
	}}
}

// ExecGroups are all flags of exec: those of Groups, and those about hosts.
func (o *Options) ExecGroups() []flags.Group {
	groups := o.Groups()
	return append([]flags.Group{groups[0], o.Hosts.group()}, groups[1:]...)
}

// Given tells whether there are hosts.
func (h *Hosts) Given() bool { return h.List != "" || h.File != "" }

// Read returns the hosts.
func (h *Hosts) Read() ([]hosts.Host, error) {
	if h.File == "" {
		return hosts.Parse(h.List)
	}
	file, err := os.Open(h.File)
	if err != nil {
		return nil, hosts.Unreadable(h.File, err)
	}
	defer file.Close()
	return hosts.ReadFile(file, h.File)
}

// CheckHosts rejects what cannot be given together with hosts: where the other agents are, and who
// they are, follows from these.
func (o *Options) CheckHosts(env envmap.Env) error {
	c, h, name := &o.Settings, &o.Hosts, "hosts"
	if h.List == "" {
		name = "hostfile"
	}
	var problems []error
	for _, other := range []string{
		"nodes", "store", "node-rank", "spares", "token-file", "last-call",
	} {
		given := o.given.Changed(other)
		problems = append(problems, command(o.given.Name()).exclusive(given, name, other))
	}
	problems = append(problems,
		command(o.given.Name()).exclusive(h.List != "" && h.File != "", "hosts", "hostfile"))
	for _, variable := range []string{"RDZV_JOIN", "RDZV_TOKEN"} {
		if env[variable] != "" {
			problems = append(problems, hint.With(
				fmt.Errorf("cannot use --%s: %s is set, and the job gets a key of its own", name, variable),
				"unset "+variable))
		}
	}
	if l := c.Launcher; l != "" && l != envmap.None {
		problems = append(problems, errors.New("cannot use --"+name+" with --launcher "+string(l)))
	}
	return flags.Join(problems...)
}
