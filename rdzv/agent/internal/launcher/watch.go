package launcher

import (
	"context"
	"sync"

	"rdzv/envmap"
	"rdzv/internal/daemon"
	"rdzv/wrap"
)

// Watch calls died when the launcher, or a process between it and this one, dies while this agent
// runs. The returned function ends the watch.
func Watch(l envmap.Launcher, died func(name string, pid int)) (stop func()) {
	chain := ancestry(l)
	if chain == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if dead, err := chain.Wait(ctx); err == nil {
			died(dead.Name, dead.PID)
		}
	})
	return func() {
		cancel()
		wg.Wait()
		chain.Close()
	}
}

// ancestry is the chain of ancestors whose end ends the job: up to the launcher's daemon. Without a
// launcher there is none, because an agent may outlive its shell (nohup). In a Slurm batch script
// it is slurmstepd alone: its end means that the job was ended, and Slurm does not kill every
// process of a job (ProctrackType).
func ancestry(l envmap.Launcher) *wrap.Ancestry {
	if l != envmap.None {
		return wrap.Ancestors(daemon.Is)
	}
	chain := wrap.Ancestors(func(name string) bool { return name == "slurmstepd" })
	if chain != nil {
		chain.KeepDaemon()
	}
	return chain
}
