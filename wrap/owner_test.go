package wrap

import (
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/boottime"
)

// connection are two ends of a stream.
func connection(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs = pollable(ends[0]), pollable(ends[1])
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return ours, theirs
}

// TestOwner: when the owner of a tree closes its end everything is killed, and what has not been
// started is not.
func TestOwner(t *testing.T) {
	nothingLeft(t)
	ours, theirs := connection(t)
	out, l := lines(t)
	w, late := sh(t, `trap "" TERM; (setsid sleep 1000 &); echo ready; sleep 0.05; echo runs
		while :; do sleep 0.05; done`),
		sh(t, "exit 0")
	w.Stdout, late.StartAt = out, time.Now().Add(time.Hour)
	if _, err := theirs.WriteString("what this process reads does not concern the holder"); err != nil {
		t.Fatal(err)
	}
	r := begin(t, Tree{Workers: []Worker{w, late}, Grace: longGrace, Owner: ours})
	l.want("ready")
	l.want("runs")
	if n := len(marked(marker(t))); n < 2 {
		t.Errorf("%d processes run", n)
	}
	theirs.Close()
	results, err := r.wait()
	out.Close()
	if err != nil || results[0].Signal != syscall.SIGKILL || !results[0].Stopped {
		t.Errorf("Run = %+v, %v", results, err)
	}
	if got := results[1]; got.PID != 0 || !got.Stopped {
		t.Errorf("the worker that was not started: %+v", got)
	}
	checkNoneLeft(t)
}

// TestOwnerHasEnded: the tree of an owner that has ended before is killed.
func TestOwnerHasEnded(t *testing.T) {
	nothingLeft(t)
	ours, theirs := connection(t)
	theirs.Close()
	results := mustRun(t, t.Context(), Tree{
		Workers: []Worker{sh(t, "exec sleep 1000")}, Grace: longGrace, Owner: ours,
	})
	if !results[0].Stopped {
		t.Errorf("the worker ended with %+v", results[0])
	}
}

// TestOwnerIsTold: the owner reads the end of the stream when nothing of the tree is left.
func TestOwnerIsTold(t *testing.T) {
	nothingLeft(t)
	ours, theirs := connection(t)
	r := begin(t, Tree{Workers: []Worker{sh(t, "exit 0")}, Owner: ours})
	if _, err := r.wait(); err != nil {
		t.Fatal(err)
	}
	ours.Close()
	if n, err := theirs.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

// TestSharedLease: a lease that was opened from its file has the terms of the other one.
func TestSharedLease(t *testing.T) {
	var l Lease
	l.Renew(time.Hour)
	file, err := l.Share()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := l.Share(); again != file || err != nil {
		t.Errorf("Share = %v, %v the second time", again, err)
	}
	other, err := OpenLease(file)
	if err != nil {
		t.Fatal(err)
	}
	changes, cancel := l.Changes()
	defer cancel()
	want := func(what string, until time.Duration, revoked, told bool) {
		t.Helper()
		got, _, isRevoked := other.state()
		if got != until || isRevoked != revoked {
			t.Errorf("%s: until %v, revoked %t, want %v, %t", what, got, isRevoked, until, revoked)
		}
		if n := len(changes); n == 1 != told {
			t.Errorf("%s: %d changes", what, n)
		}
		for len(changes) > 0 {
			<-changes
		}
	}
	want("shared", time.Hour, false, false)
	until := boottime.Now() + 2*time.Hour
	l.Renew(until)
	want("renewed", until, false, false)
	l.Revoke()
	want("revoked", until, true, true)
	l.Renew(until + time.Hour)
	want("final", until, true, false)
	late, cancelLate := l.Changes()
	defer cancelLate()
	if len(late) != 1 {
		t.Error("who asks later is not told of the revocation")
	}
	var unlimited Lease
	changes, cancel = unlimited.Changes()
	defer cancel()
	unlimited.Renew(time.Hour)
	if len(changes) != 1 {
		t.Error("the first limit is no change")
	}
	if _, err := OpenLease(os.Stdin); err == nil {
		t.Error("OpenLease accepts any file")
	}
}

// TestLastOutputIn: another process sees when a worker has last written something.
func TestLastOutputIn(t *testing.T) {
	at := new(OutputMemory)
	w := sh(t, "echo x >&2")
	w.Output, w.LastOutput = &Output{}, LastOutputIn(at)
	mustRun(t, t.Context(), Tree{Workers: []Worker{w}})
	var other LastOutput
	other.Follow(at)
	if got, want := other.Time(), w.LastOutput.Time(); !got.Equal(want) || got.IsZero() {
		t.Errorf("last output %v, want %v", got, want)
	}
	other.Keep()
	*at = OutputMemory{}
	if other.Time().IsZero() {
		t.Error("it has changed after Keep")
	}
}
