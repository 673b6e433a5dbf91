package main

// advise prints what the user should know about the command line and the variables: on rank 0's
// node, because the other agents would print the same.
func (e *execution) advise(program []string) {
	if line := withoutTorchrun(program); line != "" {
		e.console.Info("hint: rdzv starts the workers, no other launcher is needed: %s", line)
	}
	if line := outerLauncher(program); line != "" {
		e.console.Info("hint: %s", line)
	}
	if warning, instead := containerAdvice(program); warning != "" {
		e.console.Warn("%s", warning)
		e.console.Hint("start rdzv inside the container: " + instead)
	}
	if line := e.torchrun.ignoredLine(); line != "" {
		e.console.Info("%s", line)
	}
	for _, line := range unknownVariables(e.env) {
		e.console.Info("%s", line)
	}
	if e.passwordGiven(e.env) {
		e.console.Warn("warning: every user of this node can read the password of --store-user; " +
			"put it in RDZV_STORE_USER")
	}
	for _, flag := range e.unusedStoreFlags() {
		e.console.Info("ignoring %s: --store has no URL of an etcd cluster", flag)
	}
}
