// Package options has the flags of exec, which are also those of check and, in part, of env and
// store: what they set, what is wrong with them, and the configuration of an agent that they make.
// What an agent cannot use is found by package agent, which names the fields of its configuration.
package options

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// Options are the values of the flags.
type Options struct {
	Output   Output
	Torchrun Torchrun

	place       placement
	store       store
	environment environment
	limits      limits
	restarts    restarts

	given *pflag.FlagSet // from which these were read
}

// defaultPorts are below the ephemeral range of Linux, 32768-60999.
var defaultPorts = fmt.Sprintf("%d-%d", agent.Defaults().PortLow, agent.Defaults().PortHigh)

// New has the defaults of all flags.
func New() *Options {
	d := agent.Defaults()
	return &Options{
		Output:      Output{capture: captureAuto},
		environment: environment{device: string(d.Device), bind: string(d.Bind)},
		store:       store{ports: defaultPorts, prefix: rdzv.DefaultPrefix},
		limits: limits{
			joinTimeout: d.JoinTimeout, lastCall: d.LastCall, peerTimeout: d.PeerTimeout,
			grace: d.Grace, healthTimeout: d.HealthTimeout,
			stallAction: string(agent.StallEnd),
		},
	}
}

// Flags makes the flag set of a command: the flags of groups, those of torchrun, and former names.
func (o *Options) Flags(command string, groups []flags.Group) *pflag.FlagSet {
	f := flags.Define(flags.New(command), groups)
	o.Torchrun.define(f)
	f.Var((*noCapture)(&o.Output.capture), "no-capture", "")
	f.StringVar(&o.environment.exportFile, "export-file", "", "") // --export @FILE
	f.Lookup("no-capture").NoOptDefVal = "true"
	for _, name := range []string{"no-capture", "export-file"} {
		f.Lookup(name).Hidden = true
	}
	o.given = f
	return f
}

// ExecFlags are the flags of exec.
func (o *Options) ExecFlags() *pflag.FlagSet { return o.Flags("exec", o.Groups()) }

// Groups are the flags of exec as its help shows them.
func (o *Options) Groups() []flags.Group {
	return slices.Concat(
		[]flags.Group{{
			Title: "Placement, as far as the launcher does not determine it", Rows: o.place.rows(),
		}},
		o.store.groups(),
		[]flags.Group{{
			Title: "Environment of PROGRAM", Note: templateNote,
			Rows: append(o.environment.rows(), o.environment.directory()),
		}},
		o.limits.groups(),
		[]flags.Group{
			{Title: "Restarts", Rows: o.restarts.rows()},
			{Title: "Output", Rows: o.Output.rows()},
		})
}

// OfListener are the flags about a store that listens.
func (o *Options) OfListener() []flags.Row { return o.store.listening() }

// Directory is that of the workers, "" for the current one.
func (o *Options) Directory() string { return o.environment.chdir }

// JoinTimeout is how long the agents wait for each other; a command may set another default.
func (o *Options) JoinTimeout() *time.Duration { return &o.limits.joinTimeout }

// Check rejects invalid and contradictory flags before anything is started. It reports all of them.
func (o *Options) Check(env envmap.Env) error {
	c := command(o.given.Name())
	problems := []error{
		o.place.check(c, o.given), o.store.read(c, env), o.environment.check(c),
		o.restarts.read(c), o.Output.check(c),
		o.Torchrun.apply(c, &o.Output, cmp.Or(env["TMPDIR"], "/tmp")),
	}
	return flags.Join(append(problems, c.ofConfig(o.settings(env).Validate()))...)
}

// settings is the part of the agent's configuration that the flags and their variables determine.
func (o *Options) settings(env envmap.Env) agent.Config {
	c := agent.Config{Join: env["RDZV_JOIN"], Token: env["RDZV_TOKEN"]}
	o.place.set(&c, o.given)
	o.store.set(&c)
	o.environment.set(&c)
	o.limits.set(&c)
	o.restarts.set(&c, &o.place, o.given)
	o.Output.set(&c)
	return c
}

// Process has the parts of the process in which an agent runs that Options.Config passes to it.
type Process struct {
	Environ               []string
	Env                   envmap.Env // of Environ
	Stdin, Stdout, Stderr *os.File
	Console               *console.Console
	Dir                   string // of the executable, without links; "" if it is not known
}

// Config is the agent's configuration by the flags and by this process, without a program.
func (o *Options) Config(p Process) agent.Config {
	c := o.settings(p.Env)
	c.Environ, c.Stdin, c.Stdout, c.Stderr = p.Environ, p.Stdin, p.Stdout, p.Stderr
	c.Python, c.PythonDir = p.Env["RDZV_PYTHON"], p.Dir
	c.WorkerPerGPU = !asTorchrun(o.given)
	c.ShowJoinLine = p.Console.Terminal()
	if p.Console.Rewrites() {
		c.ReportEvery = time.Second
	}
	if c.Etcd.Given() {
		c.Environ = slices.DeleteFunc(slices.Clone(p.Environ), isEtcdPassword)
	}
	if c.Tag != nil {
		c.Tag = console.Tags(p.Stdout, p.Stderr, console.SettingOf(p.Env))
	}
	return c
}

// Unused are flags and variables about an etcd cluster although there is none.
func (o *Options) Unused(env envmap.Env) []string { return o.store.unused(o.given, env) }

// The notes after some groups of flags.
const (
	tokenNote = `    RDZV_TOKEN can hold the token itself, RDZV_JOIN the value that the first
    node prints on a terminal for the other nodes. RDZV_TERMINATION_LOG is the
    termination log of a pod (/dev/termination-log), or off.
`
	etcdNote = `    RDZV_STORE_USER is NAME:PASSWORD of a user of the cluster. ETCDCTL_CACERT,
    _CERT, _KEY, _USER and _PASSWORD are used too.
`
	templateNote = `    A TEMPLATE can contain {rank} {world_size} {local_rank} {local_world_size}
    {node_rank} {nodes} {node_addr} {master_addr} {master_port} {device}
    {ifname}.
`
)
