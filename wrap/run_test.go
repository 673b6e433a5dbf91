package wrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var sleeping = role("sleeping", func() {
	fmt.Println("ready")
	pause()
})

var ignoringSignals = role("ignoring signals", func() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGABRT)
	fmt.Println("ready")
	pause()
})

func TestEveryExitCode(t *testing.T) {
	nothingLeft(t)
	var tree Tree
	for code := range 256 {
		w := sh(t, fmt.Sprintf("exit %d", code))
		tree.Workers = append(tree.Workers, w)
	}
	for code, r := range mustRun(t, t.Context(), tree) {
		if r.Code != code || r.Signal != 0 || r.ExitCode() != code || r.Stopped || r.PID == 0 {
			t.Errorf("worker that exits with %d: %+v", code, r)
		}
	}
}

func TestEverySignal(t *testing.T) {
	nothingLeft(t)
	var tree Tree
	var want []syscall.Signal
	for s := syscall.Signal(1); s <= 64; s++ {
		switch s {
		case syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGURG, syscall.SIGWINCH: // ignored
		case syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU: // stop it
		case 32, 33: // used by the C library
		default:
			w := sh(t, fmt.Sprintf("ulimit -c 0; kill -%d $$; exit 0", int(s)))
			tree.Workers = append(tree.Workers, w)
			want = append(want, s)
		}
	}
	for i, r := range mustRun(t, t.Context(), tree) {
		if r.Signal != want[i] || r.ExitCode() != 128+int(want[i]) || r.Stopped {
			t.Errorf("worker killed by signal %d: %+v", int(want[i]), r)
		}
	}
}

func TestStopsWithSIGTERM(t *testing.T) {
	nothingLeft(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	tree := Tree{Workers: []Worker{worker(t, sleeping), worker(t, sleeping)}, Grace: longGrace}
	var n atomic.Int32
	tree.Started = func(int, int) {
		if n.Add(1) == 2 {
			cancel(errors.New("both have started"))
		}
	}
	for i, r := range mustRun(t, ctx, tree) {
		if r.Signal != syscall.SIGTERM || !r.Stopped {
			t.Errorf("worker %d: %+v, want Stopped and SIGTERM", i, r)
		}
	}
}

// TestKillsWorkerThatIgnoresSIGTERM: SIGKILL follows after Grace.
func TestKillsWorkerThatIgnoresSIGTERM(t *testing.T) {
	nothingLeft(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	w := worker(t, ignoringSignals)
	r, out, _ := os.Pipe()
	w.Stdout = out
	go func() {
		defer r.Close()
		r.Read(make([]byte, 10))
		cancel(nil)
	}()
	begun := time.Now()
	results := mustRun(t, ctx, Tree{Workers: []Worker{w}, Grace: 300 * time.Millisecond})
	out.Close()
	e, took := results[0], time.Since(begun)
	if e.Signal != syscall.SIGKILL || !e.Stopped || took < 300*time.Millisecond {
		t.Errorf("%+v after %v, want SIGKILL after 300 ms", e, took)
	}
}

// TestDescendantsAreKilled: descendants that the last worker leaves, and that ignore SIGTERM, are
// killed.
func TestDescendantsAreKilled(t *testing.T) {
	nothingLeft(t)
	out, text := output(t)
	w := sh(t, `
		(trap "" TERM; setsid sleep 1000 & setsid sh -c 'sleep 1001 & sleep 1002' &)
		echo started; exit 3`)
	w.Stdout = out
	results := mustRun(t, t.Context(), Tree{Workers: []Worker{w}, Grace: 100 * time.Millisecond})
	if results[0].Code != 3 || results[0].Stopped {
		t.Errorf("%+v, want Code 3, not Stopped", results[0])
	}
	if got := text(); !strings.Contains(got, "started") {
		t.Errorf("output %q, want started", got)
	}
}

func TestCapture(t *testing.T) {
	nothingLeft(t)
	out, text := output(t)
	w := sh(t, `echo one >&2; sleep 1000 & echo two >&2; exit 1`)
	w.Stderr, w.Capture = out, true
	results := mustRun(t, t.Context(), Tree{Workers: []Worker{w}})
	if got := string(results[0].Stderr); got != "one\ntwo\n" {
		t.Errorf("Result.Stderr = %q", got)
	}
	if got := text(); got != "one\ntwo\n" {
		t.Errorf("Stderr received %q", got)
	}
}

// TestCannotStart: a worker that cannot be started does not affect the others.
func TestCannotStart(t *testing.T) {
	nothingLeft(t)
	w := sh(t, "")
	w.Path = "/nowhere"
	results := mustRun(t, t.Context(), Tree{Workers: []Worker{w, sh(t, "exit 4")}})
	if r := results[0]; r.Code != 127 || !errors.Is(r.Err, syscall.ENOENT) {
		t.Errorf("worker 0: %+v, want Code 127, %v", r, syscall.ENOENT)
	}
	if r := results[1]; r.Code != 4 {
		t.Errorf("worker 1: %+v, want Code 4", r)
	}
}
