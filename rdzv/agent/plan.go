package agent

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"time"

	"rdzv/envmap"
	"rdzv/internal/plural"
	"rdzv/internal/procfs"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/exports"
	"rdzv/rdzv/agent/internal/facts"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/identity"
	"rdzv/rdzv/agent/internal/layout"
	"rdzv/rdzv/agent/internal/output"
	"rdzv/rdzv/agent/internal/setup"
	"rdzv/rdzv/agent/internal/token"
)

// Local is what one agent knows before it has met the others.
type Local struct {
	Config    Config
	Placement envmap.Placement
	Job       string         // name of the run, equal on all its agents
	Agents    int            // of the job
	Workers   int            // of this agent
	OwnTasks  bool           // the workers are the agent's own tasks: none of them is the launcher's
	Path      string         // the program's file; "" if it was not found
	HeadStart time.Duration  // of rank 0: Config.HeadStart, or 0 for a program that needs none
	Problems  []rdzv.Problem // why this agent cannot run its workers
	Devices   envmap.Devices // of this node, as far as the launcher allows
	CPUs      envmap.CPUs

	shown         output.Ranks // whose output is shown
	exports       exports.Exports
	rank0Problems []rdzv.Problem // as Problems, if one of its workers is rank 0

	awaited string        // which files do not respond; "" if all have
	waited  time.Duration // for them, by Plan
	rest    chan *Local   // gets all that is known when they have; nil if it is
	known   chan struct{} // closed then

	sharing int            // how many tasks share this agent
	tasks   []*Local       // of Config.Tasks; only what is about workers
	task    *Task          // nil for this agent's own
	numa    *identity.NUMA // nil unless the workers are to be bound
	env     envmap.Env     // Config.Environ
	setup   setup.Setup    // what the workers need
}

// Plan determines what an agent can know by itself, without any network: its placement, program
// and devices. An error means that it has no job to join. What only keeps it from running its
// workers, such as a missing program, is a problem: the agent joins with it, so that the problems
// of all nodes are reported together. Without a program, Plan is limited to the placement. If files
// do not respond within 1 s, what depends on them becomes known while the agent runs.
func Plan(c Config) (*Local, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("cannot run an agent: %w", err)
	}
	c.fill()
	l := &Local{Config: c, env: envmap.ParseEnv(c.Environ), sharing: len(c.Tasks) + 1}
	inside := l.env["RDZV_RUN_ID"] != "" && l.env["RANK"] != ""
	if inside && c.Launcher == "" { // naming a launcher starts another job in a worker
		return nil, &InsideWorkerError{l.env["RANK"], l.env["RDZV_RUN_ID"]}
	}
	l.shown, _ = output.ParseRanks(c.Show) // Validate has done it before
	known, err := l.place()
	switch {
	case !known:
		return nil, err
	case err != nil:
		return l, err
	}
	if len(c.Program) == 0 && c.Check == nil {
		l.inspect()
		return l, cmp.Or(l.readExports(), l.countWorkers())
	}
	if l.Job, err = l.naming().Name(procfs.System, os.Getpid()); err != nil {
		return nil, err
	}
	if c.Check != nil {
		l.Job = checkName(l.Job)
	}
	_ = l.countWorkers() // a problem that is found again
	if err := planTasks(l); err != nil {
		return nil, err
	}
	return l.examined(), nil
}

// place determines the agent's place, and what this implies of the others. known is false if the
// launcher's variables contradict each other.
func (l *Local) place() (known bool, err error) {
	c := l.Config
	given := envmap.Given{Launcher: c.Launcher, Nodes: c.Nodes, Host: host.Name(), Root: c.Root}
	if l.Placement, err = envmap.DetectGiven(l.env, given); err != nil {
		return false, err
	}
	l.CPUs = envmap.ReadCPUs(c.Root)
	l.Devices = envmap.VisibleDevices(l.env, c.Root)
	l.numa = identity.ReadNUMA(c.Bind, c.Root)
	all := l.layout()
	err = all.Count()
	l.Agents, l.Placement = all.Agents, all.Placement
	return true, err
}

// layout is what this agent knows of the others.
func (l *Local) layout() *layout.Layout {
	c, platform := l.Config, l.Placement.Platform
	if l.Placement.Launcher == envmap.None {
		platform = envmap.PlatformOf(l.env)
	}
	return &layout.Layout{
		Given: layout.Given{
			Nodes: c.Nodes, MinNodes: c.MinNodes, Spares: c.Spares, NodeRank: c.NodeRank, Store: c.Store,
			Known: c.Store != "" || c.Join != "" || c.Etcd.Given(),
		},
		Placement: l.Placement, Platform: platform, Agents: l.Agents, Tasks: l.sharing,
	}
}

// token is whose token this agent needs.
func (l *Local) token() token.Owner {
	all := l.layout()
	return token.Owner{
		Text: l.Config.Token, File: l.Config.TokenFile, Env: l.env, Root: l.Config.Root,
		OneHost: all.OnOneHost(), Platform: all.Platform, Agents: l.Agents,
	}
}

// FirstOfNode tells whether no other agent of this node comes before this one, as far as the
// launcher says: one that has not joined announces only then what all of them know.
func (l *Local) FirstOfNode() bool { return l.all().first().layout().FirstOfNode() }

// FirstOfJob tells whether this agent is that of the launcher's first task: it announces what all
// know from the beginning. It may be one of several without a launcher.
func (l *Local) FirstOfJob() bool { return l.all().first().Placement.Rank <= 0 }

// wanted is what this agent's workers need.
func (l *Local) wanted() setup.Wanted {
	c := l.Config
	return setup.Wanted{
		Argv: c.Program, Environ: c.Environ, Env: l.env, Root: c.Root, Dir: c.Dir, LogDir: c.LogDir,
		ExportFile: c.ExportFile, Set: c.Set, HeadStart: c.HeadStart, Checks: c.Check != nil,
	}
}

// naming is what the job's name depends on.
func (l *Local) naming() layout.Naming {
	c, p := l.Config, l.Placement
	return layout.Naming{
		Given: cmp.Or(c.Job, p.Job), Argv: c.Program, Placement: p, Agents: l.Agents, Env: l.env,
		InEtcd: c.Etcd.Given(),
	}
}

// inspect determines what the workers' environment and directory imply.
func (l *Local) inspect() {
	if l.setup = l.wanted().Inspect(); !l.setup.Hangs() {
		l.Devices = envmap.VisibleDevices(l.env, l.Config.Root) // exported variables may say which
	}
}

// readExports determines what this agent exports.
func (l *Local) readExports() (err error) {
	c := l.Config
	l.exports, err = exports.Read(c.Export, c.ExportFile, l.env, l.layout().MayRunRank0())
	return err
}

// facts are what the nodes of the job must have in common.
func (l *Local) facts() rdzv.Facts {
	hidden := slices.Concat(l.Exported(), l.exports.Own)
	own := facts.Of(l.Config.Program, l.setup.Program, l.env, hidden)
	for _, t := range l.tasks {
		if !envmap.SameButForTask(t.env, l.env) {
			own = own.With(facts.Of(l.Config.Program, t.setup.Program, t.env, hidden))
		}
	}
	return own
}

// InsideWorkerError says that this process is a worker of a job already.
type InsideWorkerError struct{ Rank, Job string }

func (e *InsideWorkerError) Error() string {
	return fmt.Sprintf("already rank %s of job %s", e.Rank, e.Job)
}

// countWorkers determines how many workers this agent runs; 1 if that fails.
func (l *Local) countWorkers() error {
	procs := l.Config.ProcsPerNode
	if procs == "" {
		procs = l.Placement.PerNode
	}
	l.Workers, l.OwnTasks = 1, procs != ""
	if procs == "" {
		return nil
	}
	n, err := envmap.ProcsPerNode(procs, l.Devices.Count(), l.CPUs.Count, rdzv.MaxSlots)
	if err == nil {
		l.Workers = n
	}
	return err
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
	reason += " (Config.Launcher none uses the field)"
	if nodes != 0 && nodes != p.Nodes && !l.layout().Elastic() {
		ignored = append(ignored, FlagIgnored{fmt.Sprintf("Config.Nodes %d", nodes), reason})
	}
	if n := l.Config.NodeRank; n != nil {
		ignored = append(ignored, FlagIgnored{fmt.Sprintf("Config.NodeRank %d", *n), reason})
	}
	return ignored
}

// ignoredStore is the setting that names a store although this agent is the only one.
func ignoredStore(c Config) []FlagIgnored {
	const reason = "the job has one node; Config.Nodes N makes it a job of N nodes"
	switch {
	case c.Store != "":
		return []FlagIgnored{{"Config.Store " + c.Store, reason}}
	case c.Join != "":
		return []FlagIgnored{{"Config.Join", reason}}
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
	return fmt.Sprintf("running %s; this %s job has %s: did you mean %q?",
		processes, e.Allocation.Manager, reserved, e.Allocation.Command+" rdzv exec ...")
}

// checkAllocation returns an [UnusedAllocationError] if nobody has said that this agent is to be
// the only one of its job, and it does not run all tasks itself.
func checkAllocation(l *Local) error {
	c := l.Config
	if l.Placement.Launcher != envmap.None || c.Launcher != "" || c.Nodes != 0 {
		return nil
	}
	a := envmap.ReadAllocation(l.env, c.Root)
	if a.Nodes < 1 || a.Nodes == 1 && a.Tasks <= l.Workers {
		return nil
	}
	return &UnusedAllocationError{l.Workers, a}
}
