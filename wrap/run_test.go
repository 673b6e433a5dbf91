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

var sleeps = role("sleeps", func() {
	fmt.Println("ready")
	pause()
})

var stubborn = role("stubborn", func() {
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
			t.Errorf("exit %d: got %+v", code, r)
		}
	}
}

func TestEverySignal(t *testing.T) {
	nothingLeft(t)
	var tree Tree
	var want []syscall.Signal
	for s := syscall.Signal(1); s <= 64; s++ {
		switch s {
		case syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGURG, syscall.SIGWINCH: // ignored by default
		case syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU: // they stop
		case 32, 33: // the C library keeps them to itself
		default:
			w := sh(t, fmt.Sprintf("ulimit -c 0; kill -%d $$; exit 0", int(s)))
			tree.Workers = append(tree.Workers, w)
			want = append(want, s)
		}
	}
	for i, r := range mustRun(t, t.Context(), tree) {
		if r.Signal != want[i] || r.ExitCode() != 128+int(want[i]) || r.Stopped {
			t.Errorf("signal %d: got %+v", int(want[i]), r)
		}
	}
}

func TestStopsWithSIGTERM(t *testing.T) {
	nothingLeft(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	tree := Tree{Workers: []Worker{worker(t, sleeps), worker(t, sleeps)}, Grace: ample}
	var n atomic.Int32
	tree.Started = func(int, int) {
		if n.Add(1) == 2 {
			cancel(errors.New("enough"))
		}
	}
	for i, r := range mustRun(t, ctx, tree) {
		if r.Signal != syscall.SIGTERM || !r.Stopped {
			t.Errorf("worker %d: %+v", i, r)
		}
	}
}

func TestKillsWhatIgnoresSIGTERM(t *testing.T) {
	nothingLeft(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	w := worker(t, stubborn)
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
	if r := results[0]; r.Signal != syscall.SIGKILL || !r.Stopped || time.Since(begun) < 300*time.Millisecond {
		t.Errorf("%+v after %v", r, time.Since(begun))
	}
}

func TestLeftBehindDescendants(t *testing.T) {
	nothingLeft(t)
	out, text := output(t)
	w := sh(t, `(trap "" TERM; setsid sleep 1000 & setsid sh -c 'sleep 1001 & sleep 1002' &) ; echo begun; exit 3`)
	w.Stdout = out
	results := mustRun(t, t.Context(), Tree{Workers: []Worker{w}, Grace: 100 * time.Millisecond})
	if results[0].Code != 3 || results[0].Stopped {
		t.Errorf("%+v", results[0])
	}
	if got := text(); !strings.Contains(got, "begun") {
		t.Errorf("output %q", got)
	}
}

func TestCapture(t *testing.T) {
	nothingLeft(t)
	out, text := output(t)
	w := sh(t, `echo one >&2; sleep 1000 & echo two >&2; exit 1`)
	w.Stderr, w.Capture = out, true
	var took time.Duration
	begun := time.Now()
	tree := Tree{Workers: []Worker{w}, Ended: func(i int, r Result) { took = time.Since(begun) }}
	results := mustRun(t, t.Context(), tree)
	if got := string(results[0].Stderr); got != "one\ntwo\n" {
		t.Errorf("remembered %q", got)
	}
	if got := text(); got != "one\ntwo\n" {
		t.Errorf("passed on %q", got)
	}
	t.Log("ended after", took)
}

func TestNotStarted(t *testing.T) {
	nothingLeft(t)
	w := sh(t, "")
	w.Path = "/nowhere"
	results := mustRun(t, t.Context(), Tree{Workers: []Worker{w, sh(t, "exit 4")}})
	if r := results[0]; r.Code != 127 || r.Err == nil || !errors.Is(r.Err, syscall.ENOENT) {
		t.Errorf("%+v", r)
	}
	if r := results[1]; r.Code != 4 {
		t.Errorf("%+v", r)
	}
}
