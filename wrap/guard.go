package wrap

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/wrap/internal/watchdog"
)

// guard is the agent's side of a watchdog.
type guard struct {
	holder  *os.Process // a child of this process
	process *os.Process // the watchdog, a child of the holder
	socket  *os.File
	reports *os.File // from the sentinel; nil without one
	slack   int      // this process's timer slack in ns; 0 if unknown
	records chan watchdog.Record
	frozen  time.Duration // see checkFrozen
}

// guards are the holders of this process with their watchdogs: children of it that are no orphans.
// A watchdog becomes one if its holder is killed.
var guards = struct {
	sync.Mutex
	watchdogs map[int]int // by holder
}{watchdogs: map[int]int{}}

// isGuard reports whether a child is one of guards, which is locked.
func isGuard(pid int) bool {
	_, holder := guards.watchdogs[pid]
	return holder || slices.Contains(slices.Collect(maps.Values(guards.watchdogs)), pid)
}

// startTries is how often a watchdog is started that dies of a signal before it can survive it.
const startTries = 5

// errDiedEarly says that it has.
var errDiedEarly = errors.New("a signal ended it")

// startGuard starts a watchdog, which has no workers yet, with or without a sentinel.
func startGuard(sentinel bool) (*guard, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, subreaperError(err)
	}
	for try := 1; ; try++ {
		g, err := tryGuard(sentinel)
		switch {
		case err == nil:
			go g.read()
			return g, nil
		case try == startTries || !errors.Is(err, errDiedEarly):
			return nil, fmt.Errorf("cannot start the watchdog: %w", err)
		}
	}
}

// subreaperError is why this process cannot be a child subreaper.
func subreaperError(err error) error {
	const text = "cannot become a child subreaper: prctl(PR_SET_CHILD_SUBREAPER): %w"
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf(text+": Linux has it since 3.4, qemu-user 7.2 does not", err)
	}
	return fmt.Errorf(text, err)
}

func tryGuard(sentinel bool) (*guard, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot create a socket pair: %w", err)
	}
	g := &guard{socket: pollable(ends[0]), records: make(chan watchdog.Record)}
	theirs := os.NewFile(uintptr(ends[1]), "agent")
	defer theirs.Close()
	if err := g.launch(theirs, sentinel); err != nil {
		g.socket.Close()
		g.reports.Close() // has no effect on nil
		return nil, err
	}
	return g, nil
}

// launch starts the holder, which starts the watchdog, and adds both to the guards of this process.
func (g *guard) launch(socket *os.File, sentinel bool) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	report := null
	if sentinel {
		if g.reports, report, err = pipe(); err != nil {
			return err
		}
		defer report.Close()
	}
	if err := g.startHolder(sentinel, socket, report, null); err != nil {
		return err
	}
	socket.Close() // if the holder ends, awaitUp reads the end of the file
	pid, err := g.awaitUp()
	guards.Lock()
	defer guards.Unlock()
	if err != nil {
		delete(guards.watchdogs, g.holder.Pid)
		return err
	}
	guards.watchdogs[g.holder.Pid] = pid
	g.process, err = os.FindProcess(pid) // never fails
	return err
}

// program is the executable of this process, which is also that of holder and watchdog.
const program = "/proc/self/exe"

// startHolder starts the holder with its first three descriptors.
func (g *guard) startHolder(sentinel bool, files ...*os.File) (err error) {
	guards.Lock()
	defer guards.Unlock()
	runtime.LockOSThread() // a process inherits the timer slack of the thread that starts it
	defer runtime.UnlockOSThread()
	if slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err == nil && slack > 0 {
		g.slack = slack
		setTimerSlack(int(watchdogSlack))
		defer setTimerSlack(slack)
	}
	group := unix.Getpgrp()
	args := watchdog.Args(os.Getpid(), group, sentinel)
	g.holder, err = os.StartProcess(program, args, &os.ProcAttr{
		Env: watchdog.HolderEnv, Files: files,
		// Group 0 has no number in this pid namespace: no process could be put back into it.
		Sys: &syscall.SysProcAttr{Setpgid: group != 0},
	})
	if err == nil {
		guards.watchdogs[g.holder.Pid] = 0 // not started yet
	}
	return err
}

// awaitUp waits until the watchdog survives signals and returns its pid.
func (g *guard) awaitUp() (pid int, err error) {
	b := make([]byte, watchdog.RecordSize)
	_, err = io.ReadFull(g.socket, b)
	up := watchdog.ParseRecord(b)
	if err == nil && up.B == 0 {
		return int(up.A), nil
	}
	state, errWait := g.holder.Wait()
	switch {
	case errWait != nil:
		return 0, errWait
	case err == nil:
		return 0, syscall.Errno(up.B)
	case watchdog.DiedEarly(state.Sys().(syscall.WaitStatus)):
		return 0, fmt.Errorf("%w (%v)", errDiedEarly, state)
	}
	return 0, fmt.Errorf("%s, which was executed as its parent %q, has ended: %v", program,
		watchdog.HolderName, state)
}

// watchdogSlack is how much later than requested the kernel may wake a thread of the watchdog
// (timer slack, prctl(2)). The Go runtime has a thread, sysmon, that wakes every 20 µs, or less
// often down to every 10 ms, while another one is busy or waits for a processor. When 64 watchdogs
// stop at the end of a job, that took as much processor time as all their other work.
const watchdogSlack = 5 * time.Millisecond

func setTimerSlack(ns int) { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(ns), 0, 0, 0) }

// read receives records until the watchdog has closed the socket.
func (g *guard) read() {
	defer close(g.records)
	b := make([]byte, watchdog.RecordSize)
	for {
		if _, err := io.ReadFull(g.socket, b); err != nil {
			return
		}
		g.records <- watchdog.ParseRecord(b)
	}
}

// lateMargin is how much longer than its own limits a watchdog may take, and how long it may be
// stopped while this process runs, before it is killed.
const lateMargin = 2 * time.Second

// order sends an order to the watchdog. If the watchdog has died, read finds that out. If it does
// not read its orders, it hangs or is stopped, and is killed: killLeft then does its work.
func (g *guard) order(r watchdog.Record) {
	_ = g.socket.SetWriteDeadline(time.Now().Add(lateMargin))
	if _, err := g.socket.Write(r.Bytes()); errors.Is(err, os.ErrDeadlineExceeded) {
		_ = g.process.Kill()
	}
}

// signal orders the watchdog to send a signal to the workers that have not received it.
func (g *guard) signal(e Event) {
	order := watchdog.Record{Kind: watchdog.Signal, A: int64(e.Signal)}
	if e.Shared {
		order.B = int64(monotonic(e.At))
	}
	if e.IfHandled {
		order.C = 1
	}
	g.order(order)
}

// monotonic is t by the watchdog's clock; 0 if t is zero.
func monotonic(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return watchdog.Monotonic() + time.Until(t)
}

// sendSpec sends the workers to the watchdog. The spec refers to streams by index.
func (g *guard) sendSpec(spec watchdog.Spec, streams []*os.File) error {
	text := spec.Bytes()
	hello := watchdog.Record{
		Kind: watchdog.Hello, A: int64(len(text)), B: int64(len(streams)), C: int64(g.slack),
	}
	if _, err := g.socket.Write(append(hello.Bytes(), text...)); err != nil {
		return err
	}
	for some := range slices.Chunk(streams, watchdog.RightsMax) {
		if err := g.sendFiles(some); err != nil {
			return err
		}
	}
	return nil
}

// sendFiles sends descriptors with one byte. Fd resets the non-blocking mode that Go sets for pipes
// that it has created, which few programs expect; a mode set by other programs stays.
func (g *guard) sendFiles(files []*os.File) error {
	var numbers []int
	for _, f := range files {
		numbers = append(numbers, int(f.Fd()))
	}
	raw, err := g.socket.SyscallConn()
	if err != nil {
		return err
	}
	rights := unix.UnixRights(numbers...)
	var sent error
	err = raw.Write(func(fd uintptr) bool {
		sent = unix.Sendmsg(int(fd), []byte{0}, rights, nil, unix.MSG_NOSIGNAL)
		return !errors.Is(sent, unix.EAGAIN)
	})
	return errors.Join(err, sent)
}

// wait waits for the end of the watchdog, which has closed its socket, and of the holder, which
// kills the tree if the watchdog has died before it could. It releases the resources of both.
func (g *guard) wait() {
	defer g.socket.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = g.holder.Wait()
		_, _ = unix.Wait4(g.process.Pid, nil, 0, nil) // it is a child now if the holder was killed
		guards.Lock()
		defer guards.Unlock()
		delete(guards.watchdogs, g.holder.Pid)
	}()
	for _, late := range []*os.Process{g.process, g.holder} { // in case one is stopped
		select {
		case <-ended:
			return
		case <-time.After(lateMargin):
			_ = late.Kill()
		}
	}
	// If a write to a log hangs in the kernel, the watchdog ends with it, and this process before.
	select {
	case <-ended:
	case <-time.After(lateMargin / 10):
	}
}
