package agent

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"rdzv/envmap"
	"rdzv/internal/plural"
	"rdzv/internal/procfs"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/identity"
	"rdzv/rdzv/agent/internal/layout"
	"rdzv/rdzv/agent/internal/output"
	"rdzv/rdzv/agent/internal/taskfiles"
	"rdzv/rdzv/restart"
)

// Plan determines what an agent can know by itself, without any network: its placement, program
// and devices. An error means that it has no job to join. What only keeps it from running its
// workers, such as a missing program, is a problem: the agent joins with it, so that the problems
// of all nodes are reported together. Plan waits for file systems that do not respond, without
// limit; after 3 s it reports that by a [Diagnostic].
func Plan(c Config) (*Local, error) {
	l, err := Place(c)
	if err != nil {
		return l, err
	}
	// only the end of the context would be an error
	_ = l.examine(context.Background(), &reporter{events: l.Config.Events})
	if len(c.Program) == 0 && c.Check == nil {
		err = cmp.Or(l.noExports, l.countWorkers())
	}
	return l, err
}

// Place is [Plan] without a look at files of the user, such as the program. [Local.Run] looks at
// them, and ends while it waits for their file system as it does while it waits for other agents.
func Place(c Config) (*Local, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("cannot run an agent: %w", err)
	}
	c.fill()
	if c.Check != nil { // no worker runs, or writes
		c.LogDir, c.Restarts, c.ExitTimeout = "", restart.Policy{}, 0
	}
	l := &Local{Config: c, env: envmap.ParseEnv(c.Environ), sharing: len(c.Tasks) + 1}
	inside := l.env["RDZV_RUN_ID"] != "" && l.env["RANK"] != ""
	if inside && c.Launcher == "" { // naming a launcher starts another job in a worker
		return nil, &InsideWorkerError{l.env["RANK"], l.env["RDZV_RUN_ID"]}
	}
	l.shown, _ = output.ParseRanks(c.Show) // Validate has done it before
	known, err := l.place(c.Root)
	switch {
	case !known:
		return nil, err
	case err != nil:
		return l, err
	}
	if len(c.Program) == 0 && c.Check == nil {
		return l, nil
	}
	if l.Job, err = l.naming().Name(procfs.System, os.Getpid()); err != nil {
		return nil, err
	}
	if c.Check != nil {
		l.Job = CheckName(l.Job)
	}
	_ = l.countWorkers() // a problem that is found again
	if err := planTasks(l); err != nil {
		return nil, err
	}
	return l, nil
}

// CheckName is the name of the job of agents that check a job: it has no other agents.
func CheckName(job string) string {
	return "check-" + job[:min(len(job), MaxJob-len("check-"))]
}

// InsideWorkerError says that this process is a worker of a job already.
type InsideWorkerError struct{ Rank, Job string }

func (e *InsideWorkerError) Error() string {
	return fmt.Sprintf("already rank %s of job %s", e.Rank, e.Job)
}

// place determines the agent's place, and what this implies of the others. known is false if the
// launcher's variables contradict each other. It reads files below root.
func (l *Local) place(root fs.FS) (known bool, err error) {
	c := l.Config
	given := envmap.Given{Launcher: c.Launcher, Nodes: c.Nodes, Host: host.Name(), Root: root}
	if l.Placement, err = envmap.DetectGiven(l.env, given); err != nil {
		return false, err
	}
	l.CPUs = envmap.ReadCPUs(root)
	l.Devices = envmap.VisibleDevices(l.env, root)
	l.numa = identity.ReadNUMA(c.Bind, root)
	all := l.layout()
	err = all.Count()
	l.Agents, l.Placement = all.Agents, all.Placement
	return true, err
}

// planTasks plans the workers of the other tasks of this node.
func planTasks(l *Local) error {
	files := &taskfiles.Cache{Files: l.Config.Root}
	for i := range l.Config.Tasks {
		t := &l.Config.Tasks[i]
		other := &Local{
			Config: t.config(l.Config), task: t, env: envmap.ParseEnv(t.Environ), Job: l.Job,
			sharing: l.sharing,
		}
		other.shown = l.shown
		if _, err := other.place(t.root(files)); err != nil {
			return err
		}
		_ = other.countWorkers() // a problem that is found again
		l.tasks = append(l.tasks, other)
	}
	return nil
}

// config is the configuration of an agent of this task alone.
func (t *Task) config(c Config) Config {
	c.Tasks, c.Problems, c.Line = nil, nil, nil
	c.Environ, c.Stdin, c.Stdout, c.Stderr = t.Environ, t.Stdin, t.Stdout, t.Stderr
	c.Root = t.root(c.Root)
	return c
}

// root is the file system as this task sees it.
func (t *Task) root(files fs.FS) fs.FS {
	return taskfiles.Root{Files: files, PID: t.PID, MayAccess: t.Accessible}
}

// naming has the inputs of the job's name. A name that the user gives comes before the launcher's.
func (l *Local) naming() layout.Naming {
	c, p := l.Config, l.Placement
	return layout.Naming{
		Given: cmp.Or(c.Job, p.Job), Argv: c.Program, Placement: p, Agents: l.Agents, Env: l.env,
		InEtcd: c.Etcd.Given(),
	}
}

// IgnoredFlags are the settings that have no effect: the launcher decides, or the job has one node.
func (l *Local) IgnoredFlags() (ignored []FlagIgnored) {
	p, nodes := l.Placement, l.Config.Nodes
	switch {
	case p.Launcher == envmap.None && nodes == 0:
		return ignoredStore(l.Config)
	case p.Launcher == envmap.None:
		return nil
	}
	reason := string(p.Launcher) + " started this job"
	if p.Nodes != envmap.Unknown {
		reason += " on " + plural.Of(p.Nodes, "node")
	}
	reason += " (--launcher none uses the flag)"
	if nodes != 0 && nodes != p.Nodes && !l.layout().Elastic() {
		ignored = append(ignored, FlagIgnored{fmt.Sprintf("--nodes %d", nodes), reason})
	}
	if n := l.Config.NodeRank; n != nil {
		ignored = append(ignored, FlagIgnored{fmt.Sprintf("--node-rank %d", *n), reason})
	}
	return ignored
}

// ignoredStore is the setting that names a store although this agent is the only one.
func ignoredStore(c Config) []FlagIgnored {
	const reason = "the job has one node; --nodes N makes it a job of N nodes"
	switch {
	case c.Store != "":
		return []FlagIgnored{{"--store " + c.Store, reason}}
	case c.Join != "":
		return []FlagIgnored{{"RDZV_JOIN", reason}}
	}
	return nil
}

// UnusedAllocationError says that this agent is a job of its own although a resource manager has
// reserved more tasks or nodes: the launcher before "rdzv exec" was probably forgotten.
type UnusedAllocationError struct {
	Workers    int
	Allocation envmap.Allocation
}

func (e *UnusedAllocationError) Error() string {
	processes, reserved := "1 process", ""
	if e.Workers > 1 {
		processes = fmt.Sprintf("%d processes", e.Workers)
	}
	if e.Allocation.Tasks != envmap.Unknown {
		reserved = plural.Of(e.Allocation.Tasks, "task") + " on "
	}
	reserved += plural.Of(e.Allocation.Nodes, "node")
	return fmt.Sprintf("warning: running %s; this %s job has %s: did you mean %q?",
		processes, e.Allocation.Manager, reserved, e.Allocation.Command+" rdzv exec ...")
}

// Hint is what to write without the launcher of MPI; "" if the manager has its own.
func (e *UnusedAllocationError) Hint() string {
	a := e.Allocation
	if a.Manager == "Slurm" || a.Nodes < 2 {
		return ""
	}
	return fmt.Sprintf("without mpirun: rdzv exec --nodes %d --store %s -- PROGRAM, "+
		"the same on each node", a.Nodes, cmp.Or(a.Host, "HOST"))
}

// checkAllocation returns an [UnusedAllocationError] if nobody has said that this agent is to be
// the only one of its job, and it does not run all tasks itself. What is reserved also tells
// whether there are others, if the variables of a starter leave that open.
func checkAllocation(l *Local) error {
	c := l.Config
	if l.Placement.Launcher != envmap.None || c.Launcher != "" || c.Nodes != 0 {
		return nil
	}
	a := envmap.ReadAllocation(l.env, c.Root)
	switch {
	case a.Nodes < 1:
		return l.Placement.Doubt()
	case a.Nodes == 1 && a.Tasks <= l.Workers:
		return nil
	}
	return &UnusedAllocationError{l.Workers, a}
}

// Preview is for "rdzv env": an agent's first worker as far as it is known before the agents meet.
type Preview struct {
	Identity envmap.Identity // unknown numbers are 0 or 1
	Changes  envmap.Changes  // of the environment; Set is without the variables in Open
	Open     []string        // variables whose values the agents agree on when they meet
	Python   string          // file of the python that python and python3 are; "" if it is not known
	Why      string          // why it is that one
	NoLibuv  string          // why USE_LIBUV is set to 0; "" if it is not
	Env      envmap.Env      // of this process, with exported variables
	Binding  envmap.Binding  // valid unless LOCAL_RANK or LOCAL_WORLD_SIZE is in Open
}

// Preview makes the environment of the first worker as far as it is known.
func (l *Local) Preview() (p Preview, err error) {
	p.Identity, p.Open = l.identities().Preview()
	p.Identity.Restarts = l.Config.Restarts.Max
	p.Binding = l.numa.Bind(&p.Identity, l.Config.Device, 0, l.Workers)
	environ, _ := envmap.Override(l.Config.Environ, l.exports.Variables)
	p.Env = envmap.ParseEnv(environ)
	p.Changes, err = envmap.TorchChanges(p.Env, p.Identity, l.Config.torchOptions(l.OwnTasks))
	if err != nil {
		return p, err
	}
	added := append(l.setup.PathChange(), l.exports.Added(l.env, p.Changes)...)
	p.Changes.Set = append(added, p.Changes.Set...)
	if p.Identity.NoLibuv && slices.Contains(p.Changes.Set, envmap.KV{Name: "USE_LIBUV", Value: "0"}) {
		torch := l.setup.Program.Torch
		p.NoLibuv = "torch " + torch.Version + " in " + torch.Dir + " is built without libuv"
	}
	p.Python, p.Why = l.setup.ChosenPython()
	kept := func(name string) bool { return slices.Contains(p.Changes.Kept, name) }
	p.Open = slices.DeleteFunc(p.Open, kept)
	open := func(kv envmap.KV) bool { return slices.Contains(p.Open, kv.Name) }
	p.Changes.Set = slices.DeleteFunc(p.Changes.Set, open)
	return p, nil
}

// workerEnviron is the environment of the first worker as far as it is known.
func (l *Local) workerEnviron() []string {
	p, err := l.Preview()
	if err != nil {
		return l.Config.Environ // that is a problem
	}
	return p.Changes.Apply(l.Config.Environ)
}

// notePreview reports what is known of the workers' environment when the program is.
func notePreview(l *Local, events *reporter) {
	p, err := l.Preview()
	if err != nil || !l.FirstOfNode() {
		return
	}
	if p.Python != "" && len(l.Config.Program) > 0 {
		text := l.Config.Program[0] + " is " + p.Python + ": " + p.Why
		events.send(EnvironmentNote{Text: text, Verbose: true})
	}
	if p.NoLibuv != "" {
		events.send(EnvironmentNote{Text: "setting USE_LIBUV=0: " + p.NoLibuv, Verbose: true})
	}
}
