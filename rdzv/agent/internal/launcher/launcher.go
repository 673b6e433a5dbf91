// Package launcher knows how the programs that start agents signal and end them, and notices when
// one of them dies.
package launcher

import (
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/envmap"
	"rdzv/internal/procfs"
	"rdzv/wrap"
)

// KillDelay is how long after its SIGTERM to a rank the launcher sends SIGKILL, 0 if it does not,
// or not soon.
//
// Source: dev/launchers.md, section e and "New traps" 1.
func KillDelay(l envmap.Launcher, env envmap.Env) time.Duration {
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

// Signalled tells who gets a signal that this process, with this pid, gets. INVOCATION_ID of
// systemd is inherited, SYSTEMD_EXEC_PID too, but is the pid of the unit's own process. scancel
// signals each process of a batch script, also those that are no tasks of srun; below salloc, in a
// terminal, it signals none of them.
func Signalled(l envmap.Launcher, env envmap.Env, pid int) wrap.Signalled {
	switch {
	case env["SYSTEMD_EXEC_PID"] == strconv.Itoa(pid):
		return wrap.Everyone
	case l == envmap.Slurm, l == envmap.SlurmPMI:
		return wrap.Everyone
	case env["SLURM_JOB_ID"] != "" && !hasTerminal():
		return wrap.Everyone
	case l.Reports() && l != envmap.Torchrun:
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

// PMIxPort is the port on which the launcher's PMIx server, on this host, serves the MPI program of
// this task, 0 if there is none: PMIX_SERVER_URI2=1553399808.0;tcp4://127.0.0.1:42425.
func PMIxPort(env envmap.Env) int {
	for _, version := range []string{"4", "3", "21", "2"} {
		uri := env["PMIX_SERVER_URI"+version]
		if port, err := strconv.Atoi(uri[strings.LastIndexByte(uri, ':')+1:]); err == nil {
			return port
		}
	}
	return 0
}

// StartedBy tells the agents that one start of a launcher has started from all others, although it
// gives the job no name: by rank 0's address (master) and port, or by the address and port at which
// Hydra's mpiexec serves its proxies. "" if neither is known.
func StartedBy(master string, env envmap.Env, proc fs.FS, pid int) string {
	if master != "" {
		return master + " " + env["MASTER_PORT"]
	}
	for _, p := range procfs.Ancestors(proc, pid) {
		if strings.HasPrefix(p.Name, "hydra_") {
			args := procfs.Arguments(proc, p.PID)
			if i := slices.Index(args, "--control-port"); i >= 0 && i+1 < len(args) {
				return args[i+1]
			}
		}
	}
	return ""
}
