package main

import (
	"time"

	"github.com/spf13/pflag"

	"rdzv/envmap"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/presence"
)

// options are the flags of exec and env.
type options struct {
	launcher string
	job      string
	nodes    int
	procs    string // --nproc-per-node: N, auto, gpu, cpu; "" is one worker per task

	store     string
	tokenFile string
	net       []string
	ports     string
	portLo    int
	portHi    int
	insecure  bool

	joinTimeout time.Duration
	peerTimeout time.Duration
	grace       time.Duration
	exitTimeout time.Duration

	masterPort int
	device     string
	set        []string
	as         string
	noCapture  bool
	reportFile string

	quiet   bool
	verbose bool

	format  string // of env: sh or json
	explain bool

	flags *pflag.FlagSet // from which these were read
}

// defaultPorts are below the ephemeral range of Linux, 32768-60999.
const defaultPorts = "29600-29999"

// define adds the flags that exec and env share.
func (o *options) define(f *pflag.FlagSet) {
	o.flags = f
	f.StringVar(&o.launcher, "launcher", "", "")
	f.StringVar(&o.job, "job", "", "")
	f.IntVar(&o.nodes, "nodes", 0, "")
	f.StringVar(&o.procs, "nproc-per-node", "", "")
	f.IntVar(&o.masterPort, "master-port", 0, "")
	f.StringVar(&o.device, "device", string(envmap.DeviceIndex), "")
	f.StringArrayVar(&o.set, "set", nil, "")
	f.StringVar(&o.as, "as", "", "")
}

// envFlags are the flags of env.
func (o *options) envFlags() *pflag.FlagSet {
	f := newFlags("env")
	o.define(f)
	f.StringVar(&o.format, "format", "sh", "")
	f.BoolVar(&o.explain, "explain", false, "")
	return f
}

// execFlags are the flags of exec.
func (o *options) execFlags() *pflag.FlagSet {
	f := newFlags("exec")
	o.define(f)
	f.StringVar(&o.store, "store", "", "")
	f.StringVar(&o.tokenFile, "token-file", "", "")
	f.StringSliceVar(&o.net, "net", nil, "")
	f.StringVar(&o.ports, "port-range", defaultPorts, "")
	f.BoolVar(&o.insecure, "insecure", false, "")
	f.DurationVar(&o.joinTimeout, "join-timeout", 10*time.Minute, "")
	f.DurationVar(&o.peerTimeout, "peer-timeout", presence.DefaultTimeout, "")
	f.DurationVar(&o.grace, "grace", 10*time.Second, "")
	f.DurationVar(&o.exitTimeout, "exit-timeout", 0, "")
	f.BoolVar(&o.noCapture, "no-capture", false, "")
	f.StringVar(&o.reportFile, "report", "", "")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "")
	return f
}

// config is the agent's configuration by the flags and by this process, without a program.
func (o *options) config(a *app) agent.Config {
	return agent.Config{
		Environ: a.environ, Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr,
		Launcher: envmap.Launcher(o.launcher), Nodes: o.nodes, ProcsPerNode: o.procs, Job: o.job,
		Store: o.store, Join: a.env["RDZV_JOIN"], Token: a.env["RDZV_TOKEN"], TokenFile: o.tokenFile,
		Insecure: o.insecure, Networks: o.net, PortLow: o.portLo, PortHigh: o.portHi,
		JoinTimeout: o.joinTimeout, PeerTimeout: o.peerTimeout, Grace: o.grace, ExitTimeout: o.exitTimeout,
		MasterPort: o.masterPort, Device: envmap.DeviceMode(o.device), Set: o.set, AsOpenMPI: o.as == "openmpi",
		NoCapture: o.noCapture, ShowJoinLine: a.console.Terminal(),
	}
}
