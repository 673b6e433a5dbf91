// Package exitorder lets the tasks of a node exit in the order in which Open MPI 4 ends a job
// soonest, see package turn.
package exitorder

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"rdzv/cmd/rdzv/internal/turn"
	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// First is the task that exits before all others of the job.
type First struct {
	known bool // there is one
	own   bool // it is a task of this agent
	local int  // local rank of its task, if it is on this node; otherwise envmap.Unknown
}

// FirstOf is the task whose worker failed first; the zero value if no worker did. host is the name
// of this node, workers the number of workers of each task.
func FirstOf(r agent.Result, host string, workers int) First {
	v := r.Verdict
	if v == nil || v.Kind != rdzv.Failed || r.Unreported { // then that task has ended already
		return First{}
	}
	first := First{known: true, own: r.Ended.Own, local: envmap.Unknown}
	if v.Host == host {
		first.local = v.LocalRank / max(workers, 1)
	}
	return first
}

// turnOf is the turn of a task that exits with code. parent is the name of its parent process. It
// is AtOnce unless mpirun ends the job because of the exit of this task or of the first one, as it
// does by default.
func turnOf(
	place envmap.Placement, env envmap.Env, code int, parent string, first First,
) turn.Turn {
	if place.Launcher != envmap.OpenMPI4 || code == 0 || !slices.Contains(daemons, parent) {
		return turn.AtOnce
	}
	for _, setting := range settings {
		if _, set := env["OMPI_MCA_"+setting]; set {
			return turn.AtOnce
		}
	}
	unknown := place.LocalRank == envmap.Unknown
	ends := 0 // the local rank of the task that ends the waits
	if first.known && first.local == 0 {
		ends = 1
	}
	switch {
	case first.own && (first.local == place.LocalRank || unknown),
		!first.known && (place.LocalRank == place.LocalSize-1 || unknown):
		return turn.AtOnce
	case place.LocalRank == ends:
		return turn.EndsWaits
	default:
		return turn.AfterSIGCONT
	}
}

var (
	// daemons are the names of processes that start and end Open MPI's tasks.
	daemons = []string{"mpirun", "mpiexec", "orterun", "mpirun.openmpi", "mpiexec.openmpi", "orted"}
	// settings change how Open MPI ends a job.
	settings = []string{
		"orte_abort_on_non_zero_status", "orte_enable_recovery", "odls_base_sigkill_timeout",
	}
)

// Of is the turn of a task that exits with code.
func Of(place envmap.Placement, env envmap.Env, code int, first First) turn.Turn {
	name, _ := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/comm")
	return turnOf(place, env, code, strings.TrimSpace(string(name)), first)
}
