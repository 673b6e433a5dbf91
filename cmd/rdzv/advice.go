package main

import (
	"rdzv/cmd/rdzv/internal/advice"
	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/options"
)

// advise prints what the user should know about the command line and the variables: on rank 0's
// node, because the other agents would print the same.
func (a *app) advise(program []string, o *options.Options) {
	a.adviseLauncher(program)
	if warning, instead := advice.Container(program); warning != "" {
		a.console.Warn("%s", warning)
		a.console.Hint("start rdzv inside the container: " + instead)
	}
	if line := o.Torchrun.IgnoredLine(); line != "" {
		a.console.Info("%s", line)
	}
	known, instead := a.commands.variables(), a.commands.withoutVariable()
	for _, line := range flags.UnknownVariables(a.env, known, instead) {
		a.console.Info("%s", line)
	}
	for _, name := range o.Unused(a.env) {
		a.console.Info("ignoring %s: --store has no URL of an etcd cluster", name)
	}
}

// adviseLauncher says that a program is a launcher itself. If it fails, this is repeated below its
// output.
func (a *app) adviseLauncher(program []string) {
	if line := advice.WithoutTorchrun(program); line != "" {
		a.console.Info("hint: rdzv starts the workers, no other launcher is needed: %s", line)
	}
	if line := advice.OuterLauncher(program); line != "" {
		a.console.Info("hint: %s", line)
	}
}
