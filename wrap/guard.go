package wrap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/wrap/internal/watchdog"
)

// guard is the agent's side of a watchdog.
type guard struct {
	process *os.Process
	socket  *os.File
	reports *os.File // from the sentinel; nil without one
	slack   int      // this process's timer slack, in ns; 0 if unknown
	events  chan watchdog.Record

	mu   sync.Mutex
	open bool // the watchdog has its workers and takes orders
	asks int  // that came before
}

// startGuard starts a watchdog that as yet guards nothing. sentinel asks for reports.
func startGuard(sentinel bool) (*guard, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("cannot become a subreaper: %w", err)
	}
	mine, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	g := &guard{socket: mine, events: make(chan watchdog.Record)}
	if err := g.launch(theirs, sentinel); err != nil {
		g.socket.Close()
		return nil, fmt.Errorf("cannot start the watchdog: %w", err)
	}
	go g.read()
	return g, nil
}

// socketPair returns our end of a socket, which can be given deadlines, and the end for the watchdog.
func socketPair() (mine, theirs *os.File, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a socket pair: %w", err)
	}
	theirs = os.NewFile(uintptr(ends[1]), "agent")
	if mine, err = pollable(ends[0], "watchdog"); err != nil {
		theirs.Close()
	}
	return mine, theirs, err
}

// read passes on what the watchdog tells until it has gone.
func (g *guard) read() {
	defer close(g.events)
	b := make([]byte, watchdog.RecordSize)
	for {
		if _, err := io.ReadFull(g.socket, b); err != nil {
			return
		}
		g.events <- watchdog.ParseRecord(b)
	}
}

// order tells the watchdog something. That it has died is noticed by read. One that does not take its orders hangs or is
// stopped, and is killed; what it should have done is done by this process.
func (g *guard) order(r watchdog.Record) {
	_ = g.socket.SetWriteDeadline(time.Now().Add(overdue))
	if _, err := g.socket.Write(r.Bytes()); errors.Is(err, os.ErrDeadlineExceeded) {
		_ = g.process.Kill()
	}
}

// guardIt gives the watchdog its workers. streams holds the descriptors that the spec refers to by index.
func (g *guard) guardIt(spec watchdog.Spec, streams []*os.File) error {
	spec.TimerSlack = g.slack
	text := spec.Bytes()
	hello := watchdog.Record{Kind: watchdog.Hello, A: int64(len(text)), B: int64(len(streams))}
	if _, err := g.socket.Write(hello.Bytes()); err != nil {
		return err
	}
	for from := 0; from < len(streams); from += watchdog.RightsMax {
		if err := g.send(streams[from:min(from+watchdog.RightsMax, len(streams))]); err != nil {
			return err
		}
	}
	_, err := g.socket.Write(text)
	return err
}

// opened is for when guardIt has returned: from now on the watchdog takes orders.
func (g *guard) opened() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = true
	for range g.asks {
		g.order(watchdog.Record{Kind: watchdog.Ask})
	}
}

// ask asks for the sentinel's Answer, as soon as that is possible.
func (g *guard) ask() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.open {
		g.asks++
		return
	}
	g.order(watchdog.Record{Kind: watchdog.Ask})
}

// send sends descriptors with one byte. Fd undoes the non-blocking mode that Go sets for pipes of its own making, which
// few programs could live with; one that has come from outside stays.
func (g *guard) send(files []*os.File) error {
	var numbers []int
	for _, f := range files {
		numbers = append(numbers, int(f.Fd()))
	}
	raw, err := g.socket.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Write(func(fd uintptr) bool {
		sent = unix.Sendmsg(int(fd), []byte{0}, unix.UnixRights(numbers...), nil, unix.MSG_NOSIGNAL)
		return !errors.Is(sent, unix.EAGAIN)
	})
	return errors.Join(err, sent)
}

// end waits for the process of the watchdog, whose socket has closed, and lets go of it.
func (g *guard) end() {
	// A watchdog that has closed its socket is exiting or dead; SIGKILL is for one in between that is stopped.
	stuck := time.AfterFunc(overdue, func() { _ = g.process.Kill() })
	_, _ = g.process.Wait()
	stuck.Stop()
	guards.Lock()
	delete(guards.pids, g.process.Pid)
	guards.Unlock()
	g.socket.Close()
}
