package main

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/etcd"
	"rdzv/rdzv/restart"
)

// options are the flags of exec, check and env.
type options struct {
	launcher string
	job      string
	nodes    int
	minNodes int // of --nodes MIN:MAX; 0 if it has one number
	nodeRank int
	procs    string // --nproc-per-node: N, auto, gpu, cpu; "" is one worker per task

	store     string
	tokenFile string
	net       commaList
	ports     string
	portLo    int
	portHi    int
	insecure  bool
	strict    bool

	storeCA     string
	storeCert   string
	storeKey    string
	storeUser   string
	storePrefix string
	cluster     etcd.Cluster // of these and of the environment, if --store has URLs

	joinTimeout  time.Duration
	lastCall     time.Duration
	peerTimeout  time.Duration
	storeTimeout time.Duration
	grace        time.Duration
	exitTimeout  time.Duration
	headStart    time.Duration
	stallTimeout time.Duration
	stallAction  string

	health        string
	healthTimeout time.Duration

	maxRestarts int
	noRestartOn commaList
	spares      int
	finalCodes  []int // of noRestartOn

	shareSignals commaList
	shared       []syscall.Signal // of shareSignals

	masterPort int
	device     string
	bind       string
	set        []string
	export     []string
	exportFile string
	chdir      string
	as         string
	capture    captureMode
	tag        bool
	show       string
	logDir     string
	reportFile string
	eventFile  string

	quiet   bool
	verbose bool

	format  string // of env: sh or json
	explain bool

	// Of check.
	json         bool
	deep         bool
	checkTimeout time.Duration

	listen string // of store

	torchrun torchrun

	flags *pflag.FlagSet // from which these were read
}

// defaultPorts are below the ephemeral range of Linux, 32768-60999.
var defaultPorts = fmt.Sprintf("%d-%d", agent.Defaults().PortLow, agent.Defaults().PortHigh)

// newOptions has the defaults of all flags.
func newOptions() *options {
	d := agent.Defaults()
	return &options{
		device: string(d.Device), bind: string(d.Bind),
		ports:       defaultPorts,
		joinTimeout: d.JoinTimeout, lastCall: d.LastCall, peerTimeout: d.PeerTimeout, grace: d.Grace,
		headStart: d.HeadStart, storePrefix: rdzv.DefaultPrefix,
		stallAction: string(agent.StallEnd), healthTimeout: d.HealthTimeout,
		format: "sh", capture: captureAuto,
	}
}

// execFlags are the flags of exec.
func (o *options) execFlags() *pflag.FlagSet {
	return o.define("exec", o.execGroups())
}

// define makes the flag set of a command: the flags of groups, those of torchrun, and former names.
func (o *options) define(command string, groups []group) *pflag.FlagSet {
	f := define(newFlags(command), groups)
	o.torchrun.define(f)
	f.Var((*noCapture)(&o.capture), "no-capture", "")
	f.StringVar(&o.exportFile, "export-file", "", "") // --export @FILE
	f.Lookup("no-capture").NoOptDefVal = "true"
	for _, name := range []string{"no-capture", "export-file"} {
		f.Lookup(name).Hidden = true
	}
	o.flags = f
	return f
}

// execGroups are the flags of exec as its help shows them.
func (o *options) execGroups() []group {
	return []group{
		{title: "Placement, as far as the launcher does not determine it", rows: o.placement()},
		{title: "Finding the other agents", note: tokenNote, rows: []flagRow{
			{"--store HOST[:PORT]|URL", "the agent on HOST hosts the store, or rdzv store does " +
				"(detected); or an etcd cluster is the store: its URLs, comma-separated", &o.store},
			o.tokenFileRow(),
			o.netRow(),
			o.portRangeRow(),
			{"--insecure", "no token: connections are not authenticated", &o.insecure},
		}},
		{title: "With an etcd cluster as the store", note: etcdNote, rows: []flagRow{
			{"--store-ca FILE", "CA certificates of the cluster (those that this host trusts)",
				&o.storeCA},
			{"--store-cert FILE", "certificate of this client", &o.storeCert},
			{"--store-key FILE", "key of that certificate", &o.storeKey},
			{"--store-user USER", "NAME:PASSWORD of a user of the cluster", &o.storeUser},
			{"--store-prefix PREFIX", "prefix of all keys (" + rdzv.DefaultPrefix + ")", &o.storePrefix},
			{"--store-timeout D", "the job ends if the cluster, or rdzv store, does not answer for this " +
				"long while PROGRAM runs (1m; in a job with restarts --peer-timeout)", &o.storeTimeout},
		}},
		{title: "Environment of PROGRAM", note: templateNote, rows: append(o.environment(),
			flagRow{"--chdir DIR", "run PROGRAM in DIR (the current directory)", &o.chdir})},
		{title: "Checks before PROGRAM starts", rows: []flagRow{
			{"--strict", "do not start if nodes differ in the script, python, torch, or variables " +
				"NCCL_*, GLOO_*, TORCH_*, OMP_* (warn)", &o.strict},
			{"--health-cmd CMD", "run CMD with /bin/sh on each node before each attempt; a node where it " +
				"fails is replaced by a spare, or the job ends with 123", &o.health},
			{"--health-timeout D", "time limit of CMD (1m)", &o.healthTimeout},
		}},
		{title: "Timeouts, such as 10s, 5m or 1h30m", rows: []flagRow{
			{"--join-timeout D", "wait this long for all agents to join, 0 is no limit (10m)",
				&o.joinTimeout},
			{"--last-call D", "with --nodes MIN:MAX, wait this long for more nodes after MIN have " +
				"joined (30s)", &o.lastCall},
			{"--peer-timeout D", "an agent that is silent for this long is lost (10s)", &o.peerTimeout},
			{"--grace D", "time between SIGTERM and SIGKILL (10s)", &o.grace},
			{"--exit-timeout D",
				"stop the remaining workers this long after the first one succeeded (never)",
				&o.exitTimeout},
			o.headStartRow(),
		}},
		{title: "A job that makes no progress", rows: []flagRow{
			{"--stall-timeout D", "the job has stalled if for D all workers were running, and none " +
				"wrote anything, reached init_process_group, or launched a collective operation that NCCL " +
				"counts (never); needs --log-dir or --tag", &o.stallTimeout},
			{"--stall-action ACTION", "end: write the stacks of all ranks, and end the job (or restart " +
				"it); stacks: only write the stacks, once per stall (end)", &o.stallAction},
		}},
		{title: "Restarts", rows: []flagRow{
			{"--max-restarts N", "if a worker fails or a node is lost, stop all workers of the job and " +
				"start them again, at most N times (0)", &o.maxRestarts},
			{"--spares N", "N more nodes wait, and take over the ranks of lost nodes (0): the last nodes " +
				"of srun; without a launcher, nodes besides those of --nodes; implies " +
				"--max-restarts N unless that is given", &o.spares},
			{"--no-restart-on CODES", "do not restart after these exit codes, comma-separated; rdzv never " +
				"does after 2, 93, 121 and 124 to 127", &o.noRestartOn},
		}},
		{title: "Signals", rows: []flagRow{
			{"--share-signals LIST", "if an agent gets one of these signals (USR1, USR2, or both " +
				"separated by a comma), all workers of the job get it, once", &o.shareSignals},
		}},
		{title: "Output", rows: []flagRow{
			{"--tag", "begin each line of PROGRAM with its rank and host: [3 node2]", &o.tag},
			{"--log-dir DIR", "also write the output of each rank to a file in DIR/latest, " +
				"rank-00003.log", &o.logDir},
			{"--show RANKS|none", "show only the output of these ranks, such as 0 or 0,4-7; local:0 is " +
				"the first rank of each node (all)",
				&o.show},
			{"--report FILE", "at the end, write to FILE how the job ended, as JSON", &o.reportFile},
			{"--events FILE", "append the events of the job to FILE, as JSON lines, on the node that " +
				"hosts the store", &o.eventFile},
			{"--capture[=WHEN]", "read stderr of PROGRAM for the report: auto (unless it is a terminal), " +
				"always (it is then no terminal for PROGRAM), or never (auto)", &o.capture},
			{"-q, --quiet", "print only why the job ended", &o.quiet},
			{"-v, --verbose", "also print how the job starts", &o.verbose},
		}},
	}
}

func (o *options) placement() []flagRow {
	return []flagRow{
		{"--launcher NAME", "use this launcher (detected)", &o.launcher},
		{"--nodes N|MIN:MAX", "number of nodes of a job without a launcher (1); with MIN:MAX it may " +
			"vary, under srun too", (*nodesValue)(o)},
		{"--node-rank N", "rank of this node in a job without a launcher (by host name)",
			&o.nodeRank},
		{"--nproc-per-node N", "workers per agent: a number, gpu, cpu or auto (1)", &o.procs},
		{"--job NAME", "name of the job, the same on all agents (generated)", &o.job},
	}
}

func (o *options) tokenFileRow() flagRow {
	return flagRow{"--token-file FILE", "the shared secret (~/.config/rdzv/token)", &o.tokenFile}
}

func (o *options) netRow() flagRow {
	return flagRow{"--net CIDR|NAME|!NAME",
		"use, or do not use, this network or interface; comma-separated", &o.net}
}

func (o *options) portRangeRow() flagRow {
	return flagRow{"--port-range LOW-HIGH", "ports for the store (" + defaultPorts + ")", &o.ports}
}

func (o *options) headStartRow() flagRow {
	return flagRow{"--head-start D", "python programs and shell scripts: start the other ranks this " +
		"long after rank 0, or later while rank 0 loads torch (200ms)", &o.headStart}
}

func (o *options) environment() []flagRow {
	return []flagRow{
		{"--master-port PORT", "MASTER_PORT (a free port)", &o.masterPort},
		{"--device MODE", "how a worker gets its device: index, mask, local-rank or none (index)",
			&o.device},
		{"--bind MODE", "numa: bind each worker to the NUMA node of its device, or to its share " +
			"of the NUMA nodes (none)", &o.bind},
		{"--set NAME=TEMPLATE", "also set NAME; repeatable (one per line in RDZV_SET)", &o.set},
		{"--export NAME", "copy this variable from rank 0's agent to all workers, also NAME=VALUE or " +
			"PREFIX*; comma-separated, repeatable; @FILE: the NAME=VALUE lines of FILE, on rank 0's " +
			"node", (*exportValue)(o)},
		{"--as openmpi", "also set OMPI_COMM_WORLD_RANK and similar variables, as mpirun does", &o.as},
	}
}

// envFlags are the flags of env.
func (o *options) envFlags() *pflag.FlagSet {
	return o.define("env", o.envGroups())
}

// envGroups are the flags of env as its help shows them.
func (o *options) envGroups() []group {
	return []group{
		{rows: []flagRow{
			{"--explain", "print the detected launcher, the variables that identified it, the source of " +
				"each value, and which of your variables are kept, replaced or ignored", &o.explain},
			{"--format sh|json", "for a POSIX shell, or one JSON object (sh)", &o.format},
		}},
		{
			title: "The flags of exec that affect values work here too", brief: true,
			rows: slices.Concat(o.placement(), o.environment(), []flagRow{o.headStartRow()}),
		},
	}
}

// config is the agent's configuration by the flags and by this process, without a program.
func (o *options) config(a *app) agent.Config {
	c := o.settings(a.env)
	c.Environ, c.Stdin, c.Stdout, c.Stderr = a.environ, a.stdin, a.stdout, a.stderr
	c.ShowJoinLine = a.console.Terminal()
	if a.console.Rewrites() {
		c.ReportEvery = time.Second
	}
	if o.cluster.Given() {
		c.Environ = slices.DeleteFunc(slices.Clone(a.environ), isEtcdPassword)
	}
	if o.tag {
		c.Tag = console.Tags(a.stdout, a.stderr, a.env["TERM"], a.env["NO_COLOR"] != "")
	}
	return c
}

// noneFor0 is what a flag means whose 0 is no time at all.
func noneFor0(d time.Duration) time.Duration {
	if d == 0 {
		return agent.None
	}
	return d
}

// settings is the part of the agent's configuration that the flags and their variables determine.
func (o *options) settings(env envmap.Env) agent.Config {
	c := agent.Config{
		Dir: o.chdir, Export: o.export, ExportFile: o.exportFile,
		Launcher: envmap.Launcher(o.launcher), Nodes: o.nodes, MinNodes: o.minNodes,
		LastCall: noneFor0(o.lastCall), ProcsPerNode: o.procs, Job: o.job,
		Store: o.store, Join: env["RDZV_JOIN"], Token: env["RDZV_TOKEN"], TokenFile: o.tokenFile,
		Etcd: o.cluster, StoreTimeout: o.storeTimeout,
		Insecure: o.insecure, Networks: o.net, PortLow: o.portLo, PortHigh: o.portHi,
		JoinTimeout: noneFor0(o.joinTimeout), PeerTimeout: o.peerTimeout, Grace: noneFor0(o.grace),
		StallTimeout: o.stallTimeout, StallAction: agent.StallAction(o.stallAction),
		HealthCmd: o.health, HealthTimeout: o.healthTimeout,
		ExitTimeout: o.exitTimeout, Restarts: restart.Policy{Max: o.restarts(), Never: o.finalCodes},
		Spares:    o.spares,
		HeadStart: noneFor0(o.headStart), Strict: o.strict, ShareSignals: o.shared,
		MasterPort: o.masterPort, Device: envmap.DeviceMode(o.device), Bind: envmap.BindMode(o.bind),
		Set: o.set, AsOpenMPI: o.as == "openmpi",
		Capture: o.capture == captureAlways, NoCapture: o.capture == captureNever,
		LogDir: o.logDir, Show: o.show,
	}
	if o.cluster.Given() {
		c.Store = ""
	}
	if o.tag {
		c.Tag = func(int, string) string { return "" } // config knows the screen
	}
	if o.flags.Changed("node-rank") {
		c.NodeRank = &o.nodeRank
	}
	return c
}

// restarts is how many there may be: without --max-restarts one for each agent that may be lost.
func (o *options) restarts() int {
	switch {
	case o.flags.Changed("max-restarts"):
		return o.maxRestarts
	case o.minNodes > 0:
		return o.nodes - o.minNodes
	}
	return o.spares
}
