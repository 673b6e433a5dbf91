package agent

import (
	"context"
	"io/fs"
	"os"
	"time"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/output"
	"rdzv/rdzv/check"
	"rdzv/rdzv/etcd"
	"rdzv/wrap"
)

// Config says what one agent is to do. Nothing else is read from the process's environment, flags
// or streams. Program is required; the zero value of every other field is a usable
// default, that of "rdzv exec" but for WorkerPerGPU and PythonDir, see [Defaults]. Texts for the
// user name its flags; each field has its flag in parentheses.
type Config struct {
	// Program is the program that every worker runs, and its arguments. A name without a slash is
	// looked up in PATH of Environ.
	Program []string
	// Python is the python that runs a Program whose name is python or python3, whatever PATH
	// has; "" is that of PATH.
	Python string
	// PythonDir is a directory, such as that of "rdzv", whose python runs such a Program, and which is
	// then the first one in the workers' PATH: if the python of PATH has no torch, and that one has;
	// VIRTUAL_ENV and CONDA_PREFIX are not set; and PATH is not exported. "" is none.
	PythonDir string
	// Environ is the environment of this process as "NAME=value": the launcher and devices are
	// recognised by it, HOME, TMPDIR, XDG_RUNTIME_DIR and PATH are read from it, and the workers'
	// environment is made from it.
	Environ []string
	// Stdin, Stdout and Stderr are the workers'; nil is /dev/null. With several workers only local
	// rank 0 gets Stdin.
	Stdin, Stdout, Stderr *os.File
	// Tasks are the launcher's other tasks of this node whose workers this agent also runs, in the
	// order of their local ranks.
	Tasks []Task
	// TasksMissing says that fewer tasks of this node came than the launcher tells. Its number may be
	// wrong, so that the agent looks for others of its job also on other hosts.
	TasksMissing bool
	// Line, if set, knows whether what this agent has copied to Stderr ends within a line.
	Line *wrap.Line

	// Dir (--chdir) is the workers' directory, relative to that of this process; "" is the latter.
	Dir string

	// Launcher (--launcher) overrides the recognition of the launcher; "" recognises it.
	Launcher envmap.Launcher
	// Nodes (--nodes) is the number of nodes of a job that no launcher started, one agent on each; 0
	// is 1.
	Nodes int
	// MinNodes (--nodes MIN:MAX) is for a job with a variable number of nodes, of which Nodes is the
	// largest one: the job starts, and goes on after a loss, with so many; 0 is Nodes. Under srun
	// Nodes is the number of its tasks, one on each node. Not with Spares.
	MinNodes int
	// NodeRank (--node-rank) is the position of this agent among those of a job that no launcher
	// started, 0 to Nodes-1: different on each agent, or nil on all, which then have an order of their
	// own. Only with it can several agents of one job run on one host.
	NodeRank *int
	// ProcsPerNode (--nproc-per-node) is the number of workers of this agent, as [envmap.ProcsPerNode]
	// reads it. "" is what the launcher asks for, else 1.
	ProcsPerNode string
	// WorkerPerGPU makes it one for each GPU if neither says how many, and one without GPUs, where an
	// agent is the only one of its node: without a launcher, or on a platform with one agent per
	// node. The program must be python or a .py file. "rdzv exec" sets it.
	WorkerPerGPU bool
	// Job (--job) names the run, equal on all its agents; "" is the launcher's name for it, else one
	// made of mpiexec's address under MPICH, or of the program, its arguments and the user id. At most
	// [MaxJob] bytes, no control characters, and as [rdzv.CheckName] says.
	Job string

	// Store (--store) is the HOST or HOST:PORT of the agent that is to host the store; "" lets the
	// agents find it.
	Store string
	// Join (RDZV_JOIN) is the join line of the node that hosts the store, ADDR:PORT/KEY; there can be
	// several addresses, separated by commas.
	Join string
	// Started (--hosts) says that one program has started all agents, and gives each one NodeRank and
	// Token. It ends the job if one is lost, so none is replaced. The agent with node rank 0 hosts the
	// store at once, and StoreFound has the addresses that the others get in Join.
	Started bool
	// Token (RDZV_TOKEN) is the token itself; TokenFile (--token-file) names the file that holds it.
	// If both are "" it is ~/.config/rdzv/token, which is created if it is missing.
	Token, TokenFile string
	// Insecure (--insecure) runs the job without a key: no authentication, no encryption.
	Insecure bool
	// Etcd (--store URL and --store-ca, --store-cert, --store-key, --store-prefix and RDZV_STORE_USER)
	// is an existing etcd cluster that is the store; the zero value lets an agent host the store. With
	// it, neither Store, Join nor Insecure may be set, and a token is not needed: etcd decides who may
	// read and write its keys. Exported variables are there as they are.
	Etcd etcd.Cluster
	// Networks (--net) restricts the addresses that are used: CIDR, interface name, or !name.
	Networks []string
	// PortLow and PortHigh (--port-range) are the range of the store's port; both 0 is 29600 to 29999.
	PortLow, PortHigh int

	// Rules are those of the agent that leads the job. With MinNodes a LastCall of 0 is 30 s, see
	// [None]. Spares are without a launcher besides Nodes, under srun among its tasks, one on each
	// node. See [AttemptFailed] about Restarts.
	rdzv.Rules

	// JoinTimeout (--join-timeout) is how long to wait until all agents have joined; 0 is 10 min, and
	// [None] no limit.
	JoinTimeout time.Duration
	// PeerTimeout (--peer-timeout) is how long an agent may be silent before it counts as lost; 0 is
	// 10 s. The minimum is 3 s; with Etcd and Restarts MinPeerTimeoutInEtcd.
	PeerTimeout time.Duration
	// StoreTimeout (--store-timeout) is how long Etcd may not answer before it is lost, which ends
	// this agent's workers. At least PeerTimeout. 0 is 1 min; with Restarts PeerTimeout, because
	// another agent may run the same ranks after that.
	StoreTimeout time.Duration
	// Grace (--grace) is the time between SIGTERM and SIGKILL when workers are stopped; 0 is 10 s, and
	// [None] sends SIGKILL right after SIGTERM.
	Grace time.Duration
	// StallTimeout (--stall-timeout) is how long all workers of the job may run without any of them
	// writing a byte, reaching init_process_group, ending, or launching a collective operation of
	// which NCCL tells: the job has stalled then. Time in which the agents were stopped, or a worker
	// waited for a CPU, does not count. 0 never looks. It needs Tag or LogDir: other output is not
	// read. All agents of a job should have the same.
	StallTimeout time.Duration
	// StallAction (--stall-action) selects the reaction to a stall; "" is StallEnd. That of rank 0's
	// agent counts.
	StallAction StallAction
	// DescribeStall returns the text of the report that is written to LogDir; nil is the JSON form of
	// the event.
	DescribeStall func(Stalled) string

	// HealthCmd (--health-cmd) is a command of /bin/sh that has to succeed on each node before each
	// attempt, within HealthTimeout (--health-timeout); 0 is 1 min. One agent of each node runs it
	// while the agents join. A node where it fails is lost to the job, as if its agent were: a spare
	// takes its place, or the job ends.
	HealthCmd     string
	HealthTimeout time.Duration

	// Strict (--strict) makes differences between nodes problems: the job then starts only if the
	// nodes do not differ. It is enough if one agent of the job has it.
	Strict bool

	// MasterPort (--master-port) is MASTER_PORT; 0 chooses a free port.
	MasterPort int
	// Device (--device) is how a worker gets its device; "" is envmap.DeviceIndex.
	Device envmap.DeviceMode
	// Bind (--bind) says whether each worker is bound to the NUMA node of its device; "" is
	// envmap.BindNone.
	Bind envmap.BindMode
	// Set (--set) holds NAME=TEMPLATE entries for the workers' environment, see package envmap.
	Set []string
	// AsOpenMPI (--as openmpi) sets OMPI_COMM_WORLD_RANK and the like for the workers too.
	AsOpenMPI bool
	// Export (--export) are variables that all workers of the job get from this agent if it runs rank
	// 0: NAME, PREFIX* or NAME=VALUE, several separated by commas, see [envmap.ParseExports];
	// ExportFile (--export @FILE) names a file of NAME=VALUE lines, see [envmap.ParseExportFile]. Not
	// with Insecure.
	Export     []string
	ExportFile string
	// NoCapture (--capture never) gives the workers Stderr itself. Otherwise they write to a pipe, or
	// if Stderr is a terminal to a pseudoterminal, and everything is copied to Stderr, so that the
	// report has their last lines; a job that has one worker at most keeps the terminal.
	NoCapture bool

	// Tag (--tag) returns what is written before every line of a worker that is shown, for its rank
	// and host; nil writes nothing. The workers then get a pipe, also if LogDir is given.
	Tag func(rank int, host string) string
	// Framed shows the output of all workers in frames, for a program that shows that of several
	// agents: the rank, " ", a length, "\n", and so many bytes. Then nothing is tagged or held back.
	Framed bool
	// LogDir (--log-dir) is a directory in which the output of each worker is kept, stdout and stderr
	// in order: as RUN/attempt-0/rank-00003.log, where RUN is the job's name and the time, equal on
	// all agents of the job; "latest" is a link to RUN. "" keeps nothing.
	LogDir string
	// Show (--show) are the ranks whose output is shown, such as "0,4-7", the local ranks such as
	// "local:0", or "none"; "" shows all. The others do not get Stdout and Stderr. Not with NoCapture,
	// as Tag and LogDir.
	Show string

	// RankTimes lets Result.Ranks have when the workers have reached init_process_group, and the times
	// of the workers of other agents.
	RankTimes bool

	// Problems are reasons found by the caller for which the job cannot run with this agent. All
	// agents report them, and none starts workers.
	Problems []rdzv.Problem

	// Check checks the nodes of the job and runs no workers; nil runs them. Program is then optional.
	Check *Check

	// ShowJoinLine allows events to have the join line for other nodes, which contains the job
	// key: it must be shown to the user alone.
	ShowJoinLine bool

	// ReportEvery is how often [Waiting] is reported, for a display that replaces one report by the
	// next; 0 reports after 5 s, 15 s and 1 min, and then every 5 min.
	ReportEvery time.Duration
	// Events receives every event, one call at a time; it must return soon. nil discards them.
	Events func(Event)
	// StoreFailed is called if etcd, which this agent hosts, cannot go on (for example because the
	// disk is full): etcd then ends the process by a panic, which this function may forestall with
	// an exit of its own. Workers are stopped by the runner. May be nil.
	StoreFailed func(error)
	// Root is the file system in which devices, processors and cgroups are looked up; nil is "/".
	// It may implement envmap.Accessible.
	Root fs.FS
}

// StallAction selects the reaction to a stall, see Config.StallTimeout.
type StallAction string

const (
	StallEnd    StallAction = "end"    // the attempt ends, as after a failure
	StallStacks StallAction = "stacks" // their stacks are reported, once per stall
)

// Check lets an agent check the nodes of a job instead of running workers, as "rdzv check" does.
type Check struct {
	// Report gets the report on all nodes, on the agent that hosts the store, before the other
	// agents end. It is not called if the job ended before the agents have met.
	Report func(check.Report)
}

// Task is one of the launcher's tasks of this node, other than the one whose process this agent is.
// The agent runs its workers too. They run the same program in the same directory, but are
// descendants of that task, with its environment, streams, cgroup and limits.
type Task struct {
	PID     int      // of the task's process
	Environ []string // as Config.Environ
	// Stdin, Stdout and Stderr are the task's own streams, for asking what they are: Run gives them
	// to workers with a Stdin, Stdout or Stderr.
	Stdin, Stdout, Stderr *os.File
	// PMI is a descriptor of this process that is the task's PMI_FD; 0 is none.
	PMI int
	// Accessible tells whether the task may read and write a device file; nil is as this process may.
	Accessible func(name string) bool

	// Run runs workers in the task, as wrap.Run does in this process. If the task is lost it returns
	// an error that is wrap.ErrRunner, as all results that it has not delivered.
	Run func(context.Context, wrap.Tree) ([]wrap.Result, error)
	// ReadFile reads a file below /proc, with an absolute path, as the task may, and Remaining is
	// wrap.Remaining there: the descendants of other tasks can be hidden from this process.
	ReadFile  func(name string) ([]byte, error)
	Remaining func() []wrap.Process
	// Signals is the source of the signals that the task's process receives. Lost is closed when the
	// process has died and nothing of its tree is left; HasDied tells, when Run has returned
	// wrap.ErrRunner, whether it has.
	Signals *wrap.Source
	Lost    <-chan struct{}
	HasDied func() bool
}

// MaxJob is the longest name of a job, in bytes. It becomes a part of keys and of the workers'
// environment.
const MaxJob = 200

// DefaultStoreTimeout is that of Config.StoreTimeout in a job without restarts.
const DefaultStoreTimeout = time.Minute

// MinPeerTimeoutInEtcd is the minimum of Config.PeerTimeout in a job with restarts whose store is
// an etcd cluster. Such an agent ends its workers when it could not renew its lease for so long,
// and electing a leader takes etcd up to 2 s with its default settings.
const MinPeerTimeoutInEtcd = 5 * time.Second

const maxPort = 65535

// CheckShow checks a value of Config.Show.
func CheckShow(ranks string) error {
	_, err := output.ParseRanks(ranks)
	return err
}

// exports tells whether variables are to be exported.
func (c *Config) exports() bool { return len(c.Export) > 0 || c.ExportFile != "" }

// piped tells whether stdout of all workers is a pipe to this agent.
func (c *Config) piped() bool { return c.Tag != nil || c.Framed || c.LogDir != "" }

// torchOptions are those of the workers' environment; ownTasks are no tasks of a launcher.
func (c *Config) torchOptions(ownTasks bool) envmap.TorchOptions {
	return envmap.TorchOptions{
		Device: c.Device, Set: c.Set, AsOpenMPI: c.AsOpenMPI, StripLauncher: ownTasks,
	}
}

// joinBy is when an attempt that begins now ends if not all agents have joined; zero is never.
func (c *Config) joinBy() time.Time {
	if c.JoinTimeout == 0 {
		return time.Time{}
	}
	return time.Now().Add(c.JoinTimeout)
}

// logs are the files of this run.
func (c *Config) logs(w rdzv.World) output.Logs {
	return output.Logs{Dir: c.LogDir, Job: w.Job, Began: w.Began, Attempt: w.Attempt}
}

// lostAfter is how long an agent may be silent before the others consider it lost. In a job with
// restarts it is as long as the store may be silent.
func (c *Config) lostAfter() time.Duration {
	if c.Restarts.Max > 0 {
		return max(c.PeerTimeout, c.StoreTimeout)
	}
	return c.PeerTimeout
}

// settleMargin is how much longer than the grace the slowest agent may take to report that its
// workers have ended, or than the peer timeout the leader may take to notice that one is lost.
const settleMargin = 5 * time.Second

// settleTimeout is longer than the peer timeout if there are restarts: the workers of a lost agent
// may cause others to fail at once, and only if the loss is noticed after that its ranks are given
// to another agent. In a check an agent may be looking at its node.
func (c *Config) settleTimeout() time.Duration {
	if c.Check != nil {
		return c.checkTime() + settleMargin
	}
	if c.Restarts.Max > 0 {
		return max(c.Grace, c.lostAfter()) + settleMargin
	}
	return c.Grace + settleMargin
}

// endTime is how long workers may take to end after Grace. They have 0.6 s to print their stacks,
// before SIGKILL.
const endTime = 3 * time.Second

// outlives is how long workers may run after a store that no agent hosts has answered their agent
// the last time, if no other attempt may follow.
func (c *Config) outlives() time.Duration {
	if c.Check != nil {
		return 0
	}
	return c.StoreTimeout + c.Grace + endTime
}

// lostGrace is how long the workers of a lost agent may run on.
func (c *Config) lostGrace() time.Duration { return min(c.Grace, rdzv.MaxLostGrace) }
