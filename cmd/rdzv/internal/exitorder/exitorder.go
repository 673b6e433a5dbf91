// Package exitorder lets the agents of a node exit in the order in which Open MPI 4 ends a job
// soonest.
package exitorder

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// A turn determines when an agent exits after a failure. Open MPI 4 ends a job with SIGCONT, a wait
// of 1 s, SIGTERM, another wait of 1 s, and SIGKILL, even if all of its tasks have ended. A task
// that ends during a wait also ends the wait: so the agents of a node exit one after another.
// mpirun names the one that exits first: that is the agent of the worker that failed first.
//
// Source: dev/launchers.md, section e, "When mpirun returns after a failure".
type turn int

const (
	exitAtOnce       turn = iota // makes mpirun end the job
	exitAfterSIGCONT             // ends the first wait
	exitAfterSIGTERM             // ends the second wait
)

// First is the agent that exits before all others of the job.
type First struct {
	known bool // there is one
	own   bool // it is this agent
	local int  // its local rank, if it is on this node; otherwise envmap.Unknown
}

// FirstOf is the agent whose worker failed first; the zero value if no worker did. host is the
// name of this agent's node.
func FirstOf(r agent.Result, host string, workers int) First {
	v := r.Verdict
	if v == nil || v.Kind != rdzv.Failed || r.Unreported { // then that agent has ended already
		return First{}
	}
	first := First{known: true, own: r.Ended.Own, local: envmap.Unknown}
	if v.Host == host {
		first.local = v.LocalRank / max(workers, 1)
	}
	return first
}

// turnOf is the turn of an agent that exits with code. parent is the name of its parent process. It
// is exitAtOnce unless mpirun ends the job because of the exit of this agent or of the first one,
// as it does by default.
func turnOf(
	place envmap.Placement, env envmap.Env, code int, parent string, first First,
) turn {
	if place.Launcher != envmap.OpenMPI4 || code == 0 || !slices.Contains(daemons, parent) {
		return exitAtOnce
	}
	for _, setting := range settings {
		if _, set := env["OMPI_MCA_"+setting]; set {
			return exitAtOnce
		}
	}
	before := max(0, place.LocalSize-1-place.LocalRank) // the local ranks may be unknown
	switch {
	case first.own:
		return exitAtOnce
	case first.known && first.local <= place.LocalRank: // also if it is on another node
		before++
	}
	switch {
	case before == 0, place.LocalSize >= tasksStartedInThreads && !first.known:
		return exitAtOnce
	case before == 1, place.LocalSize >= tasksStartedInThreads:
		return exitAfterSIGCONT
	default:
		return exitAfterSIGTERM
	}
}

// tasksStartedInThreads is the number of tasks on a node from which on Open MPI starts them in
// threads (odls_base_cutoff). These threads then get SIGCHLD, and no wait ends early.
const tasksStartedInThreads = 32

var (
	// daemons are the names of processes that start and end Open MPI's tasks.
	daemons = []string{"mpirun", "mpiexec", "orterun", "mpirun.openmpi", "mpiexec.openmpi", "orted"}
	// settings change how Open MPI ends a job.
	settings = []string{
		"orte_abort_on_non_zero_status", "orte_enable_recovery", "odls_base_sigkill_timeout",
	}
)

// Signals are the signals of the turns. They are caught from the start of the agent: mpirun may
// begin to end the job before this agent knows about the failure.
type Signals struct{ cont, term chan os.Signal }

func Catch() Signals {
	s := Signals{make(chan os.Signal, 1), make(chan os.Signal, 1)}
	signal.Notify(s.cont, syscall.SIGCONT)
	signal.Notify(s.term, syscall.SIGTERM)
	return s
}

// turnTimeout bounds the wait for a turn: mpirun first ends the tasks of its own node, which takes
// 2 s, then those of the others.
const turnTimeout = 5 * time.Second

// await returns at this agent's turn: mpirun has sent the signal and sleeps.
func (s Signals) await(ctx context.Context, t turn, root fs.FS, mpirun int) {
	if t == exitAtOnce {
		return
	}
	cont := s.cont
	if t == exitAfterSIGTERM {
		cont = nil
	}
	select {
	case <-cont:
	case <-s.term:
	case <-ctx.Done():
		return
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for running(root, mpirun) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// running tells whether the main thread of a process runs or waits for a disk.
func running(root fs.FS, pid int) bool {
	stat, _ := fs.ReadFile(root, fmt.Sprintf("proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
	return strings.HasPrefix(state, "R") || strings.HasPrefix(state, "D")
}

// Await waits until the agent of this process may exit with code.
func Await(
	s Signals, place envmap.Placement, env envmap.Env, code int, first First,
) {
	ctx, cancel := context.WithTimeout(context.Background(), turnTimeout)
	defer cancel()
	root, mpirun := os.DirFS("/"), os.Getppid()
	name, _ := fs.ReadFile(root, fmt.Sprintf("proc/%d/comm", mpirun))
	s.await(ctx, turnOf(place, env, code, strings.TrimSpace(string(name)), first), root, mpirun)
}
