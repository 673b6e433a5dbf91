package wrap

import (
	"errors"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rdzv/wrap/internal/holder"
)

// TestHolderSurvives: a holder survives every signal except SIGKILL and SIGSTOP, and without a fork
// those that Go leaves to the C library.
func TestHolderSurvives(t *testing.T) {
	nothingLeft(t)
	cmd, _ := startAgent(t, 1, nil)
	pid := holderOf(t, cmd.Process.Pid)
	fatal := []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP}
	if !holder.Forked {
		fatal = append(fatal, 32, 33, 34)
	}
	for s := syscall.Signal(1); s <= 64; s++ {
		if !slices.Contains(fatal, s) {
			syscall.Kill(pid, s)
		}
	}
	eventually(t, "the holder sleeps", func() bool {
		state, err := readState(pid)
		return err != nil || state == 'S'
	})
	if n := len(marked(marker(t))); dead(pid) || n < 10 {
		t.Errorf("the holder is dead: %v; %d processes of the tree run", dead(pid), n)
	}
}

// Each time that a holder is stopped counts from the beginning.
func TestContinuedHolderIsNotFrozen(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	h := &client{process: cmd.Process, holder: &holder.Process{PID: cmd.Process.Pid}}
	signal := func(s syscall.Signal, want bool) {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		eventually(t, "its state changes", func() bool { return stopped(cmd.Process.Pid) == want })
	}
	signal(syscall.SIGSTOP, true)
	again := h.childChanged(nil)
	if again == nil || h.frozen != frozenStep || h.childChanged(again) != again {
		t.Fatalf("a holder that is stopped is checked again: %v, after %v", again != nil, h.frozen)
	}
	signal(syscall.SIGCONT, false)
	if again = h.childChanged(again); again != nil || h.frozen != 0 {
		t.Errorf("a holder that is continued is checked again: %v, after %v", again != nil, h.frozen)
	}
}

// TestUnreadOrder: what a holder reports last is read although it has not read an order.
func TestUnreadOrder(t *testing.T) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := &client{socket: pollable(ends[0]), records: make(chan holder.Record)}
	defer h.socket.Close()
	h.order(holder.Record{Kind: holder.Kill})
	finished := holder.Record{Kind: holder.Finished}
	if _, err := unix.Write(ends[1], finished.Bytes()); err != nil {
		t.Fatal(err)
	}
	unix.Close(ends[1])
	go h.read()
	if r, ok := <-h.records; !ok || r != finished {
		t.Errorf("read %+v, %t, want Finished", r, ok)
	}
	if r, ok := <-h.records; ok {
		t.Errorf("read %+v after it", r)
	}
}

func TestSubreaperError(t *testing.T) {
	const want = "cannot become a child subreaper: prctl(PR_SET_CHILD_SUBREAPER): invalid argument: " +
		"Linux has it since 3.4, qemu-user 7.2 does not"
	if err := subreaperError(unix.EINVAL); err.Error() != want || !errors.Is(err, unix.EINVAL) {
		t.Errorf("error %v, want %s", err, want)
	}
}
