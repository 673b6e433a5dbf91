package wrap

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
	"rdzv/wrap/internal/holder"
)

// client is the agent's side of a holder.
type client struct {
	holder  *holder.Process
	process *os.Process
	socket  *os.File
	records chan holder.Record
	frozen  time.Duration // see checkFrozen
}

// holders are the pids of the holders of this process: children of it that are no orphans.
var holders = struct {
	sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

// startHolder starts a holder, which has no workers yet.
func startHolder(c holder.Config) (*client, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, subreaperError(err)
	}
	holders.Lock()
	defer holders.Unlock()
	p, err := holder.New(c)
	if err != nil {
		return nil, fmt.Errorf("cannot start the holder: %w", err)
	}
	holders.pids[p.PID] = true
	process, err := os.FindProcess(p.PID) // never fails
	h := &client{
		holder: p, process: process, socket: pollable(p.Socket),
		// It has room for the start and the end of all workers, and for more: a holder that cannot
		// report them takes no orders, while this process may be about to order something of each.
		records: make(chan holder.Record, 64+4*len(c.Workers)),
	}
	go h.read()
	return h, err
}

// pollable returns a file that supports deadlines.
func pollable(fd int) *os.File {
	_ = unix.SetNonblock(fd, true) // cannot fail
	return os.NewFile(uintptr(fd), "")
}

// subreaperError is why this process cannot be a child subreaper.
func subreaperError(err error) error {
	const text = "cannot become a child subreaper: prctl(PR_SET_CHILD_SUBREAPER): %w"
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf(text+": Linux has it since 3.4, qemu-user 7.2 does not", err)
	}
	return fmt.Errorf(text, err)
}

// read receives records until the holder has ended. If that has not read an order, as one to kill
// when it had already ended, the kernel reports ECONNRESET before the records that are left.
func (h *client) read() {
	defer close(h.records)
	b := make([]byte, holder.RecordSize)
	for {
		switch n, err := h.socket.Read(b); {
		case errors.Is(err, unix.ECONNRESET):
		case err != nil || n != len(b):
			return
		default:
			h.records <- holder.ParseRecord(b)
		}
	}
}

// lateMargin is how much longer than its own limits a holder may take, and how long it may be
// stopped while this process runs, before it is killed.
const lateMargin = 2 * time.Second

// order sends an order to the holder. If the holder has died, read finds that out. If it does not
// read its orders, it hangs or is stopped, and is killed: killLeft then does its work.
func (h *client) order(r holder.Record) {
	_ = h.socket.SetWriteDeadline(time.Now().Add(lateMargin))
	if _, err := h.socket.Write(r.Bytes()); errors.Is(err, os.ErrDeadlineExceeded) {
		h.kill()
	}
}

func (h *client) kill() { _ = h.process.Kill() }

// signal sends a signal to a child of the holder.
func (h *client) signal(pid int, s syscall.Signal, flags int64) {
	h.order(holder.Record{Kind: holder.Signal, A: int64(pid), B: int64(s), C: flags})
}

// children are those of the holder.
func (h *client) children() []int {
	pids, _ := procfs.Children(procfs.System, h.holder.PID) // one that has ended has none
	return pids
}

// wait waits for the end of the holder, which has closed its socket, and releases its resources.
func (h *client) wait() {
	defer h.socket.Close()
	defer h.holder.Close()
	late := time.AfterFunc(lateMargin, h.kill) // in case it is stopped
	defer late.Stop()
	_, _ = h.process.Wait()
	holders.Lock()
	defer holders.Unlock()
	delete(holders.pids, h.holder.PID)
}

// stopped reports whether a process is stopped by a signal. One that a debugger has stopped is not:
// its state is 't'.
func stopped(pid int) bool {
	p, err := procfs.Read(procfs.System, pid)
	return err == nil && p.State == 'T'
}

// frozenStep is how often a stopped holder is checked again.
const frozenStep = time.Second

// childChanged is called when the holder may have been stopped or continued, which the kernel
// reports to this process, its parent, with SIGCHLD. The channel is that of the last check.
func (h *client) childChanged(again <-chan time.Time) <-chan time.Time {
	if again != nil && stopped(h.holder.PID) {
		return again
	}
	return h.checkFrozen()
}

// checkFrozen is called then, and each time that the returned channel delivers. It kills a holder
// that is stopped for lateMargin: killLeft then kills the tree. A step counts as frozenStep, also
// if this process was stopped meanwhile.
func (h *client) checkFrozen() (again <-chan time.Time) {
	switch {
	case !stopped(h.holder.PID):
		h.frozen = 0
		return nil
	case h.frozen >= lateMargin:
		h.kill()
		return nil
	}
	h.frozen += frozenStep
	return time.After(frozenStep)
}
