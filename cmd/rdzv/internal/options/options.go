// Package options has the flags of exec, which are also those of check and, in part, of env and
// store. A flag sets its field of the configuration of an agent; if its text needs to be read, by a
// type beside the flag. What no agent can use is found by package agent, which names the flag.
package options

import (
	"cmp"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/envmap"
	"rdzv/rdzv/agent"
)

// Options are the values of the flags.
type Options struct {
	Settings agent.Config
	Output   Output
	Torchrun Torchrun
	Hosts    Hosts

	given *pflag.FlagSet // from which these were read
}

// New has the defaults of all flags.
func New() *Options { return &Options{Settings: agent.Defaults()} }

// Flags makes the flag set of a command: the flags of groups, those of torchrun, and former names.
func (o *Options) Flags(command string, groups []flags.Group) *pflag.FlagSet {
	f := flags.Define(flags.New(command), groups)
	o.Torchrun.define(f)
	f.Var(noCapture{&o.Settings}, "no-capture", "")
	f.StringVar(&o.Settings.ExportFile, "export-file", "", "") // --export @FILE
	f.Lookup("no-capture").NoOptDefVal = "true"
	for _, name := range []string{"no-capture", "export-file"} {
		f.Lookup(name).Hidden = true
	}
	o.given = f
	return f
}

// ExecFlags are the flags of exec.
func (o *Options) ExecFlags() *pflag.FlagSet { return o.Flags("exec", o.ExecGroups()) }

// Groups are the flags of exec as its help shows them. Each sets what Settings or Output has.
func (o *Options) Groups() []flags.Group {
	c := &o.Settings
	return slices.Concat([]flags.Group{placement(c)}, stores(c), []flags.Group{environment(c)},
		limits(c), []flags.Group{restarts(c), output(c, &o.Output)})
}

// OfListener are the flags about a store that listens.
func (o *Options) OfListener() []flags.Row { return listening(&o.Settings) }

// Check rejects invalid and contradictory flags before anything is started. It reports all of them.
func (o *Options) Check(env envmap.Env) error {
	o.complete(env)
	c := command(o.given.Name())
	return flags.Join(c.exclusive(o.Output.Quiet && o.Output.Verbose, "quiet", "verbose"),
		c.ofConfig(o.Settings.Validate()))
}

// complete sets what follows from other flags, and from variables that are those of no flag.
func (o *Options) complete(env envmap.Env) {
	c := &o.Settings
	c.Join, c.Token = env["RDZV_JOIN"], env["RDZV_TOKEN"]
	if !o.given.Changed("max-restarts") {
		c.Restarts.Max = impliedRestarts(c)
	}
	if c.Etcd.Given() {
		completeCluster(&c.Etcd, env)
	}
	o.Torchrun.apply(c, &o.Output, cmp.Or(env["TMPDIR"], "/tmp"))
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
	c := o.Settings
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
