// Package turn lets a task of Open MPI 4 exit when mpirun waits for that, see package exitorder.
package turn

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A Turn determines when a task exits after a failure. Open MPI 4 ends a job with SIGCONT, a wait
// of 1 s, SIGTERM, another wait of 1 s, and SIGKILL, even if all of its tasks have ended. A task
// that ends during a wait also ends the wait: so the tasks of a node exit one after another. mpirun
// names the one that exits first: that is the task of the worker that failed first.
//
// Source: dev/launchers.md, section e, "When mpirun returns after a failure".
type Turn int

const (
	AtOnce       Turn = iota // makes mpirun end the job
	AfterSIGCONT             // ends the first wait
	AfterSIGTERM             // ends the second wait
)

// Signals are the signals of the turns. They are caught from the start: mpirun may begin to end the
// job before this process knows about the failure.
type Signals struct{ cont, term chan os.Signal }

// Catch catches them.
func Catch() Signals {
	s := Signals{make(chan os.Signal, 1), make(chan os.Signal, 1)}
	signal.Notify(s.cont, syscall.SIGCONT)
	signal.Notify(s.term, syscall.SIGTERM)
	return s
}

// timeout bounds the wait for a turn: mpirun first ends the tasks of its own node, which takes
// 2 s, then those of the others.
const timeout = 5 * time.Second

// await returns at this agent's turn: mpirun has sent the signal and sleeps.
func (s Signals) await(ctx context.Context, t Turn, root fs.FS, mpirun int) {
	if t == AtOnce {
		return
	}
	cont := s.cont
	if t == AfterSIGTERM {
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
	stat, _ := fs.ReadFile(root, "proc/"+strconv.Itoa(pid)+"/stat")
	_, state, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
	return strings.HasPrefix(state, "R") || strings.HasPrefix(state, "D")
}

// Await waits until it is this task's turn to exit. mpirun is its parent.
func (s Signals) Await(t Turn) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	s.await(ctx, t, os.DirFS("/"), os.Getppid())
}
