package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"rdzv/envmap"
	"rdzv/wrap"
)

// daemons are the processes of launchers that start ranks: when one of them, or
// anything between it and this process, is gone, the job is over, whether or not
// the launcher itself brings its ranks down.
var daemons = []string{
	"mpirun", "mpiexec", "orterun", "mpirun.openmpi", "mpiexec.openmpi", "orted", // Open MPI 4
	"prterun", "prted", "prte", // Open MPI 5
	"hydra_pmi_proxy", "hydra_bstrap_proxy", "pmi_proxy", // MPICH, Intel MPI, MVAPICH2
	"slurmstepd", "flux-shell", "palsd", "jsmd",
}

// killsAfter is how long after its SIGTERM to a rank the launcher sends SIGKILL, 0
// if it does not, or not soon.
//
// Source: docs/launchers.md, section e and "New traps" 1.
func killsAfter(l envmap.Launcher, env envmap.Env) time.Duration {
	switch l {
	case envmap.OpenMPI4:
		if s, err := strconv.Atoi(env["OMPI_MCA_odls_base_sigkill_timeout"]); err == nil && s > 0 {
			return time.Duration(s) * time.Second
		}
		return time.Second
	case envmap.OpenMPI5:
		return 250 * time.Millisecond
	}
	return 0
}

// orphaned is why something ended: the launcher has died.
type orphaned struct {
	name string
	pid  int
}

func (o orphaned) Error() string {
	return fmt.Sprintf("%s (process %d on %s) has died", o.name, o.pid, host())
}
func (o orphaned) ExitCode() int { return codeLost }

// above is the line of processes that this agent needs. By hand it needs none: nohup
// must work. In a batch script of Slurm that is so as long as Slurm's own daemon is
// there: when the script has ended, by a signal even while this agent runs, so has the
// job, but Slurm does not find an orphan everywhere (ProctrackType).
func above(l envmap.Launcher) *wrap.Ancestry {
	if l != envmap.None {
		return wrap.Ancestors(func(name string) bool { return slices.Contains(daemons, name) })
	}
	line := wrap.Ancestors(func(name string) bool { return name == "slurmstepd" })
	if line != nil {
		line.KeepDaemon()
	}
	return line
}

// watchLauncher ends the job when the launcher dies and leaves this agent behind.
// The returned function ends the watch.
func (g *agent) watchLauncher() (stop func()) {
	line := above(g.place.Launcher)
	if line == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if dead, err := line.Wait(ctx); err == nil {
			g.outside.orphaned(orphaned{dead.Name, dead.PID})
		}
	})
	return func() {
		cancel()
		wg.Wait()
		line.Close()
	}
}

// orphaned ends the job, or the looking for it.
func (o *outside) orphaned(why orphaned) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cancel(why)
	o.wake.Do(func() { close(o.had) }) // a dead launcher sends nothing
	if o.session == nil {
		return
	}
	s := o.session
	o.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), tellTimeout)
		defer cancel()
		s.Lose(ctx, why.Error())
	})
}
