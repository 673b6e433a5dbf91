package agent

import (
	"cmp"
	"slices"
	"time"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/exports"
	"rdzv/rdzv/agent/internal/facts"
	"rdzv/rdzv/agent/internal/identity"
	"rdzv/rdzv/agent/internal/layout"
	"rdzv/rdzv/agent/internal/output"
	"rdzv/rdzv/agent/internal/setup"
	"rdzv/rdzv/agent/internal/token"
	"rdzv/rdzv/internal/record"
)

// Local is the result of [Plan]: the place, program and devices of one agent, as far as they are
// known before it has met the others; or of [Place]: then Workers, PerGPU, OwnTasks, Path,
// HeadStart and Problems are known when Run has looked at the program. [Local.Run] runs the agent.
type Local struct {
	Config    Config
	Placement envmap.Placement
	Job       string         // name of the run, equal on all its agents
	Agents    int            // of the job
	Workers   int            // of this agent
	PerGPU    bool           // there is a worker for each GPU, or one without GPUs
	OwnTasks  bool           // the workers are the agent's own tasks: none of them is the launcher's
	Path      string         // the program's file; "" if it was not found
	HeadStart time.Duration  // of rank 0; 0 for a program that needs none
	Problems  []rdzv.Problem // why this agent cannot run its workers
	Devices   envmap.Devices // of this node, as far as the launcher allows
	CPUs      envmap.CPUs

	shown         output.Ranks // whose output is shown
	exports       exports.Exports
	noExports     error          // why they are not known
	rank0Problems []rdzv.Problem // as Problems, if one of its workers is rank 0

	examined   bool   // its files have been looked at
	awaited    string // what does not respond of them; "" if nothing is known
	overridden bool   // exports are those of rank 0's agent

	sharing int            // how many tasks share this agent
	tasks   []*Local       // of Config.Tasks; only what is about workers
	task    *Task          // nil for this agent's own
	runner  ownRunner      // of this agent's own
	numa    *identity.NUMA // nil unless the workers are to be bound
	env     envmap.Env     // Config.Environ
	setup   setup.Setup    // what the workers need
}

// layout describes the agents that the job is to have. Agents is 0 until place has counted them.
func (l *Local) layout() *layout.Layout {
	c, platform := l.Config, l.Placement.Platform
	if l.Placement.Launcher == envmap.None {
		platform = envmap.PlatformOf(l.env)
	}
	return &layout.Layout{
		Given: layout.Given{
			Nodes: c.Nodes, MinNodes: c.MinNodes, Spares: c.Spares, NodeRank: c.NodeRank, Store: c.Store,
			Known:   c.Store != "" || c.Join != "" || c.Etcd.Given(),
			Started: c.Started,
		},
		Placement: l.Placement, Platform: platform, Agents: l.Agents, Tasks: l.sharing,
	}
}

// token is whose token this agent needs.
func (l *Local) token() token.Owner {
	all := l.layout()
	return token.Owner{
		Text: l.Config.Token, File: l.Config.TokenFile, Env: l.env, Root: l.Config.Root,
		OneHost: all.OnOneHost(), Platform: all.Platform, Agents: l.Agents, None: l.Config.Insecure,
	}
}

// FirstOfNode tells whether no other agent of this node comes before this one, as far as the
// launcher says: one that has not joined announces only then what all of them know.
func (l *Local) FirstOfNode() bool { return l.all().first().layout().FirstOfNode() }

// FirstOfJob tells whether this agent is that of the launcher's first task: it announces what all
// know from the beginning. It may be one of several without a launcher.
func (l *Local) FirstOfJob() bool { return l.all().first().Placement.Rank <= 0 }

// facts are published so that the leader can compare the nodes. Variables that may be exported are
// left out, see package facts.
func (l *Local) facts() rdzv.Facts {
	hidden := slices.Concat(l.Exported(), l.exports.Own)
	own := facts.Of(l.Config.Program, l.setup.Program, l.env, hidden)
	own.Known = append(own.Known, l.gpuFact()...)
	for _, t := range l.tasks {
		if !envmap.SameButForTask(t.env, l.env) {
			own = own.With(facts.Of(l.Config.Program, t.setup.Program, t.env, hidden))
		}
	}
	if limit := l.Config.StallTimeout; limit > 0 { // without it on one node no stall is detected
		own.Variables["stall timeout"] = limit.String()
	}
	return own
}

// identities makes the identities of this agent's workers.
func (l *Local) identities() identity.Maker {
	return identity.Maker{
		Placement: l.Placement, Agents: l.Agents, Elastic: l.layout().Elastic(), Workers: l.Workers,
		Devices: l.Devices, CPUs: l.CPUs, NCCLConfigured: l.setup.NCCL,
		NoLibuv: l.setup.Program.Torch.LacksLibuv(),
	}
}

// Exported are the names of the variables that all workers get from rank 0's agent, as far as this
// agent knows them.
func (l *Local) Exported() []string { return exports.Names(l.exports.Variables) }

// NoMemoryNode is why the workers get no preferred memory node although they are bound to a NUMA
// node; nil if they do, or if they are not to be bound.
func (l *Local) NoMemoryNode() error { return l.numa.NoMemoryNode() }

// localTasks are all tasks of an agent, in the order of their workers. The first one is its own.
type localTasks []*Local

func (l *Local) all() localTasks { return append(localTasks{l}, l.tasks...) }

// isOnly tells whether the job has no other agent.
func isOnly(l *Local) bool { return len(l.all()) == l.Agents }

// mayBeSeveral tells whether the job may have several workers, in one attempt or one after another.
func (all localTasks) mayBeSeveral() bool { return all[0].Agents > 1 || all.workers() > 1 }

// first is the task with the lowest rank.
func (all localTasks) first() *Local {
	return slices.MinFunc(all, func(a, b *Local) int {
		return cmp.Compare(a.Placement.Rank, b.Placement.Rank)
	})
}

// records are the tasks as the agent publishes them.
func (all localTasks) records() (list []rdzv.Task) {
	for _, t := range all {
		p := t.Placement
		list = append(list, rdzv.Task{Rank: p.Rank, LocalRank: p.LocalRank, Slots: t.Workers})
	}
	return list
}

// others are the launcher's ranks of the tasks but the agent's own, such as "1-7"; "" if there are
// none.
func (all localTasks) others() string {
	var ranks []int
	for _, t := range all[1:] {
		ranks = append(ranks, t.Placement.Rank)
	}
	return record.Ranges(ranks)
}

// otherPMI are the descriptors of the other tasks by which Hydra's ranks exchange values.
func (all localTasks) otherPMI() (list []int) {
	for _, t := range all[1:] {
		if t.task.PMI > 0 {
			list = append(list, t.task.PMI)
		}
	}
	return list
}

// workers is the number of workers of all tasks.
func (all localTasks) workers() (n int) {
	for _, t := range all {
		n += t.Workers
	}
	return n
}

// of is the task that the i-th worker of the agent belongs to.
func (all localTasks) of(i int) *Local {
	for _, t := range all {
		if i -= t.Workers; i < 0 {
			return t
		}
	}
	return nil
}

// problems are those of all tasks, each once.
func (all localTasks) problems() (problems []rdzv.Problem) {
	for _, t := range all {
		for _, p := range t.Problems {
			if !slices.Contains(problems, p) {
				problems = append(problems, p)
			}
		}
	}
	return problems
}
