package agent

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"rdzv/envmap"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/wrap"
)

// daemons are the processes of launchers that start ranks: when one of them, or anything between
// it and this process, is gone, the job is over, whether or not the launcher itself ends its
// ranks.
var daemons = []string{
	"mpirun", "mpiexec", "orterun", "mpirun.openmpi", "mpiexec.openmpi", "orted", // Open MPI 4
	"prterun", "prted", "prte", // Open MPI 5
	"hydra_pmi_proxy", "hydra_bstrap_proxy", "pmi_proxy", // MPICH, Intel MPI, MVAPICH2
	"slurmstepd", "flux-shell", "palsd", "jsmd",
}

// killDelay is how long after its SIGTERM to a rank the launcher sends SIGKILL, 0 if it does not,
// or not soon.
//
// Source: docs/launchers.md, section e and "New traps" 1.
func killDelay(l envmap.Launcher, env envmap.Env) time.Duration {
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

// LauncherDiedError says that the launcher died before there was a job.
type LauncherDiedError struct {
	Name string // of the process
	PID  int
	Host string
}

func (e *LauncherDiedError) Error() string {
	return fmt.Sprintf("lost the launcher: %s (pid %d on %s) died", e.Name, e.PID, e.Host)
}

// ancestry is the line of processes that this agent needs. Without a launcher it needs none: nohup
// must work. In a batch script of Slurm that holds as long as Slurm's own daemon is there: when
// the script has ended, by a signal even while this agent runs, so has the job, but Slurm does not
// find an orphan everywhere (ProctrackType).
func ancestry(l envmap.Launcher) *wrap.Ancestry {
	if l != envmap.None {
		return wrap.Ancestors(func(name string) bool { return slices.Contains(daemons, name) })
	}
	line := wrap.Ancestors(func(name string) bool { return name == "slurmstepd" })
	if line != nil {
		line.KeepDaemon()
	}
	return line
}

// watchLauncher calls died when the launcher dies and leaves this agent behind. The returned
// function ends the watch.
func watchLauncher(l envmap.Launcher, died func(*LauncherDiedError)) (stop func()) {
	line := ancestry(l)
	if line == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if dead, err := line.Wait(ctx); err == nil {
			died(&LauncherDiedError{dead.Name, dead.PID, host.Name()})
		}
	})
	return func() {
		cancel()
		wg.Wait()
		line.Close()
	}
}
