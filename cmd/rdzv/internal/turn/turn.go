// Package turn lets the tasks of a node exit in the order in which Open MPI 4 ends a job soonest.
package turn

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/envmap"
)

// A Turn determines when a task exits after a failure. Open MPI 4 ends a job with SIGCONT, a wait
// of 1 s, SIGTERM, another wait of 1 s, and SIGKILL, even if all of its tasks have ended. SIGCHLD
// ends a wait early, if mpirun's main thread gets it: so one task of each node sends it. mpirun
// names the task that exits first: that is the task of the worker that failed first.
//
// Source: dev/launchers.md, section e, "When mpirun returns after a failure".
type Turn int

const (
	AtOnce       Turn = iota // makes mpirun end the job
	AfterSIGCONT             // exits when mpirun ends the job
	EndsWaits                // ends both waits, then exits
)

// First is the task of the job that exits before all others; the zero value if there is none.
type First struct {
	Known bool
	Own   bool // it is a task of this agent
	Local int  // its local rank, if it is on this node; otherwise envmap.Unknown
}

// Of is the turn of a task that exits with code.
func Of(place envmap.Placement, env envmap.Env, code int, first First) Turn {
	name, _ := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/comm")
	return turnOf(place, env, code, strings.TrimSpace(string(name)), first)
}

// turnOf is the turn of a task that exits with code. parent is the name of its parent process. It
// is AtOnce unless mpirun ends the job because of the exit of this task or of the first one, as it
// does by default.
func turnOf(
	place envmap.Placement, env envmap.Env, code int, parent string, first First,
) Turn {
	if place.Launcher != envmap.OpenMPI4 || code == 0 || !slices.Contains(daemons, parent) {
		return AtOnce
	}
	for _, setting := range settings {
		if _, set := env["OMPI_MCA_"+setting]; set {
			return AtOnce
		}
	}
	unknown := place.LocalRank == envmap.Unknown
	ends := 0 // the local rank of the task that ends the waits
	if first.Known && first.Local == 0 {
		ends = 1
	}
	switch {
	case first.Own && (first.Local == place.LocalRank || unknown),
		!first.Known && (place.LocalRank == place.LocalSize-1 || unknown):
		return AtOnce
	case place.LocalRank == ends:
		return EndsWaits
	default:
		return AfterSIGCONT
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

// Signals are the signals of the turns. They are caught from the start: mpirun may begin to end the
// job before this process knows about the failure.
type Signals struct {
	cont, term chan os.Signal
	parent     int // mpirun, or orted
}

// Catch catches them.
func Catch() Signals {
	s := Signals{make(chan os.Signal, 1), make(chan os.Signal, 1), os.Getppid()}
	signal.Notify(s.cont, syscall.SIGCONT)
	signal.Notify(s.term, syscall.SIGTERM)
	return s
}

// timeout bounds the wait for a turn: mpirun first ends the tasks of its own node, which takes
// 2 s, then those of the others.
const timeout = 5 * time.Second

// await returns at the turn of this task.
func (s Signals) await(ctx context.Context, t Turn, m mpirun) {
	if t == AtOnce {
		return
	}
	waited := false // mpirun has, once
	select {
	case <-s.cont:
	case <-s.term:
		waited = true
	case <-ctx.Done():
		return
	}
	if t == EndsWaits && (waited || s.endWait(ctx, m, s.term)) {
		s.endWait(ctx, m, nil)
	}
}

// endWait ends a wait of mpirun: the one before next, which may come at any time, or the last. It
// tells whether that has succeeded.
func (s Signals) endWait(ctx context.Context, m mpirun, next <-chan os.Signal) bool {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for last := ""; ; {
		now := m.sleep()
		if now != "" && now == last {
			m.interrupt()
			if next == nil {
				return true
			}
		}
		last = now
		select {
		case <-next:
			return true
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// mpirun is the process that has started this task: mpirun, or orted.
type mpirun interface {
	// sleep identifies the sleep in which its main thread is; "" if it runs. A sleep that lasts for
	// a tick is a wait: mpirun sleeps briefly on its way to it.
	sleep() string
	interrupt() // ends a sleep of its main thread
}

type process struct {
	root fs.FS
	pid  int
}

// sleep is the number of context switches. A thread that waits for a disk does not sleep.
func (p process) sleep() string {
	status, err := fs.ReadFile(p.root, "proc/"+strconv.Itoa(p.pid)+"/status")
	if err != nil {
		return "ended"
	}
	for _, running := range []string{"\nState:\tR", "\nState:\tD"} {
		if bytes.Contains(status, []byte(running)) {
			return ""
		}
	}
	_, switches, _ := bytes.Cut(status, []byte("\nvoluntary_ctxt_switches:\t"))
	return string(switches)
}

// interrupt sends SIGCHLD to the main thread: the kernel gives that of a task that has ended to the
// thread that started it, and merges signals to the process.
func (p process) interrupt() { unix.Tgkill(p.pid, p.pid, unix.SIGCHLD) }

// Await waits until it is this task's turn to exit. It does not if the parent has died, which Catch
// has seen: another process has adopted this one then, and is not to get signals.
func (s Signals) Await(t Turn) {
	if os.Getppid() != s.parent {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	s.await(ctx, t, process{os.DirFS("/"), s.parent})
}
