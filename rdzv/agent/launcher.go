package agent

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/envmap"
	"rdzv/internal/procfs"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/wrap"
)

// daemons are the processes of launchers that start ranks. When one of them, or a process between
// it and this one, has ended, the job is over, whether or not the launcher ends its ranks.
var daemons = []string{
	"mpirun", "mpiexec", "orterun", "mpirun.openmpi", "mpiexec.openmpi", "orted", // Open MPI 4
	"prterun", "prted", "prte", // Open MPI 5
	"hydra_pmi_proxy", "hydra_bstrap_proxy", "pmi_proxy", // MPICH, Intel MPI, MVAPICH2
	"slurmstepd", "flux-shell", "palsd", "jsmd",
}

// killDelay is how long after its SIGTERM to a rank the launcher sends SIGKILL, 0 if it does not,
// or not soon.
//
// Source: dev/launchers.md, section e and "New traps" 1.
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

// signalled tells who gets a signal that this process, with this pid, gets. INVOCATION_ID of
// systemd is inherited, SYSTEMD_EXEC_PID too, but is the pid of the unit's own process. scancel
// signals each process of a batch script, also those that are no tasks of srun; below salloc, in a
// terminal, it signals none of them.
func (l *Local) signalled(pid int) wrap.Signalled {
	switch launcher := l.Placement.Launcher; {
	case l.env["SYSTEMD_EXEC_PID"] == strconv.Itoa(pid):
		return wrap.Everyone
	case launcher == envmap.Slurm, launcher == envmap.SlurmPMI:
		return wrap.Everyone
	case l.env["SLURM_JOB_ID"] != "" && !hasTerminal():
		return wrap.Everyone
	case launcher.Reports() && launcher != envmap.Torchrun:
		return wrap.Launched
	}
	return wrap.Alone
}

// hasTerminal tells whether this process has a controlling terminal.
func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	_ = tty.Close()
	return true
}

// pmixPort is the port on which the launcher's PMIx server, on this host, serves the MPI program of
// this task, 0 if there is none: PMIX_SERVER_URI2=1553399808.0;tcp4://127.0.0.1:42425.
func pmixPort(env envmap.Env) int {
	for _, version := range []string{"4", "3", "21", "2"} {
		uri := env["PMIX_SERVER_URI"+version]
		if port, err := strconv.Atoi(uri[strings.LastIndexByte(uri, ':')+1:]); err == nil {
			return port
		}
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

// startedBy tells the agents that one start of a launcher has started from all others, although it
// gives the job no name: by rank 0's address and port, or by the address and port at which Hydra's
// mpiexec serves its proxies. "" if neither is known.
func (l *Local) startedBy(proc fs.FS) string {
	if l.Placement.Master != "" {
		return l.Placement.Master + " " + l.env["MASTER_PORT"]
	}
	for _, p := range procfs.Ancestors(proc, os.Getpid()) {
		if strings.HasPrefix(p.Name, "hydra_") {
			args := procfs.Arguments(proc, p.PID)
			if i := slices.Index(args, "--control-port"); i >= 0 && i+1 < len(args) {
				return args[i+1]
			}
		}
	}
	return ""
}

// masterHint is what to do if the name of rank 0's node does not resolve; "" if nothing is known to
// help. Pods have names only with a headless service.
func (l *Local) masterHint() string {
	switch l.Placement.Launcher {
	case envmap.Kubernetes, envmap.JobSet, envmap.Volcano, envmap.LWS, envmap.Kubeflow:
		return "pods find each other by name if they have a subdomain, and there is a headless " +
			"Service of that name, with publishNotReadyAddresses"
	}
	return ""
}

// ancestry is the chain of ancestors whose end ends the job: up to the launcher's daemon. Without a
// launcher there is none, because an agent may outlive its shell (nohup). In a Slurm batch script
// it is slurmstepd alone: its end means that the job was ended, and Slurm does not kill every
// process of a job (ProctrackType).
func ancestry(l envmap.Launcher) *wrap.Ancestry {
	if l != envmap.None {
		return wrap.Ancestors(func(name string) bool { return slices.Contains(daemons, name) })
	}
	chain := wrap.Ancestors(func(name string) bool { return name == "slurmstepd" })
	if chain != nil {
		chain.KeepDaemon()
	}
	return chain
}

// watchLauncher calls died when the launcher dies while this agent runs. The returned function ends
// the watch.
func watchLauncher(l envmap.Launcher, died func(*LauncherDiedError)) (stop func()) {
	chain := ancestry(l)
	if chain == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if dead, err := chain.Wait(ctx); err == nil {
			died(&LauncherDiedError{dead.Name, dead.PID, host.Name()})
		}
	})
	return func() {
		cancel()
		wg.Wait()
		chain.Close()
	}
}

// How much later than another agent this one may get a signal that a launcher sends to all: on a
// busy machine more than 200 ms were seen with Open MPI 5. If the workers of the other agent did
// not get it, the launcher has probably not sent it.
const (
	ownWait       = 200 * time.Millisecond
	ownWaitShared = time.Second
)

// awaitOwn waits, a little, for this agent's own signal. A dead launcher sends none. shared says
// that the other agent's workers have received the signal too.
func (in *interrupts) awaitOwn(shared bool) {
	wait := ownWait
	if shared {
		wait = ownWaitShared
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case <-in.interrupted.Done():
	case <-late.C:
	}
}

// orphaned ends the job, or the joining, because the launcher is dead.
func (in *interrupts) orphaned(why *LauncherDiedError) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.interrupt(why)
	if in.orphan = why; in.session != nil {
		in.loseSession()
	}
}

// loseSession writes to the store that the launcher is dead.
func (in *interrupts) loseSession() {
	s, why := in.session, in.orphan.Error()
	in.write(func(ctx context.Context) { s.ReportLoss(ctx, why, true) })
}
