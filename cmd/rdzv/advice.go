package main

import (
	"rdzv/cmd/rdzv/internal/advice"
	"rdzv/cmd/rdzv/internal/flags"
)

// advise prints what the user should know about the command line and the variables: on rank 0's
// node, because the other agents would print the same.
func (e *execution) advise() {
	if line := advice.WithoutTorchrun(e.program); line != "" {
		e.app.console.Info("hint: rdzv starts the workers, no other launcher is needed: %s", line)
	}
	if line := advice.OuterLauncher(e.program); line != "" {
		e.app.console.Info("hint: %s", line)
	}
	if warning, instead := advice.Container(e.program); warning != "" {
		e.app.console.Warn("%s", warning)
		e.app.console.Hint("start rdzv inside the container: " + instead)
	}
	if line := e.options.Torchrun.IgnoredLine(); line != "" {
		e.app.console.Info("%s", line)
	}
	for _, line := range flags.UnknownVariables(e.app.env, knownVariables()) {
		e.app.console.Info("%s", line)
	}
	if e.options.PasswordGiven(e.app.env) {
		e.app.console.Warn("warning: every user of this node can read the password of --store-user; " +
			"put it in RDZV_STORE_USER")
	}
	for _, flag := range e.options.Unused() {
		e.app.console.Info("ignoring %s: --store has no URL of an etcd cluster", flag)
	}
}
