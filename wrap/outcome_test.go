package wrap

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// These tests are the rows of the outcome table in doc.go.

// counts writes the name of every signal it gets to stdout and ends with 7 at SIGUSR2.
var counts = role("counts", func() {
	c := make(chan os.Signal, 16)
	signal.Notify(c)
	os.Stdout.WriteString("ready\n")
	for s := range c {
		if s == syscall.SIGURG {
			continue // Go's own
		}
		os.Stdout.WriteString(strings.ReplaceAll(s.String(), " ", "-") + "\n")
		if s == syscall.SIGUSR2 {
			os.Exit(7)
		}
	}
})

func TestLingerKeepsWhatIsLeft(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	w := sh(t, `sh -c 'trap "echo told; exit" TERM; echo up; while :; do sleep 0.01; done' & sleep 0.05; exit 0`)
	w.Stdout = out
	ended := make(chan Result, 1)
	r := begin(t, Tree{Workers: []Worker{w}, Linger: true, Ended: func(_ int, r Result) { ended <- r }})
	l.want("up")
	if e := <-ended; e.Code != 0 || e.Stopped {
		t.Errorf("%+v", e)
	}
	select {
	case <-r.done:
		t.Fatal("Run returned though ctx goes on")
	case <-time.After(50 * time.Millisecond):
	}
	if n := len(marked(marker(t))); n == 0 {
		t.Error("what was left behind is gone")
	}
	r.cancel(nil)
	r.one()
	l.want("told")
}

func TestStopDelivered(t *testing.T) {
	nothingLeft(t)
	for _, row := range []struct {
		name string
		stop func(began time.Time) *Stop
		want []string
	}{
		{"now", func(time.Time) *Stop { return &Stop{Delivered: true} }, nil},
		{"after its start", func(began time.Time) *Stop { return &Stop{Delivered: true, At: time.Now()} }, nil},
		{"before its start", func(began time.Time) *Stop { return &Stop{Delivered: true, At: began.Add(-time.Second)} }, []string{"terminated"}},
		{"not", func(time.Time) *Stop { return &Stop{} }, []string{"terminated"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			out, l := lines(t)
			w := worker(t, counts)
			w.Stdout = out
			signals := make(chan syscall.Signal)
			began := make(chan time.Time, 1)
			r := begin(t, Tree{Workers: []Worker{w}, Signals: signals, Started: func(int, int) { began <- time.Now() }})
			l.want("ready")
			r.cancel(row.stop(<-began))
			l.want(row.want...)
			signals <- syscall.SIGUSR2
			l.want("user-defined-signal-2")
			if e := r.one(); e.Code != 7 || !e.Stopped {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestStopStacks(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	stderr, text := output(t)
	caught := worker(t, sleeps) // Go's runtime catches SIGABRT
	plain := sh(t, `echo ready; exec sleep 1000`)
	caught.Stdout, plain.Stdout = out, out
	caught.Stderr, caught.Capture = stderr, true
	begun := time.Now()
	r := begin(t, Tree{Workers: []Worker{caught, plain}})
	l.want("ready", "ready")
	r.cancel(&Stop{Stacks: true, Err: errors.New("stragglers")})
	results, err := r.wait()
	if err != nil {
		t.Fatal(err)
	}
	if e := results[0]; e.Code != 2 || !e.Stopped || !strings.Contains(string(e.Stderr), "goroutine 1") {
		t.Errorf("%+v", e)
	}
	if e := results[1]; e.Signal != syscall.SIGTERM || !e.Stopped {
		t.Errorf("%+v", e)
	}
	if !strings.Contains(text(), "SIGABRT") {
		t.Error("no stack was printed")
	}
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestDeaf: of three workers only the one that ignores SIGTERM and catches SIGABRT shows its stack, and nothing ends the run.
func TestDeaf(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	stderr, text := output(t)
	tree := Tree{Workers: []Worker{worker(t, deaf), worker(t, counts), sh(t, `trap "" TERM; echo ready; exec sleep 1000`)}}
	for i := range tree.Workers {
		tree.Workers[i].Stdout = out
	}
	tree.Workers[0].Stderr = stderr
	now, ended := make(chan struct{}), make(chan int, len(tree.Workers))
	tree.Deaf, tree.Ended = now, func(i int, _ Result) { ended <- i }
	r := begin(t, tree)
	l.want("ready", "ready", "ready")
	close(now)
	if i := <-ended; i != 0 {
		t.Errorf("worker %d ended first", i)
	}
	r.cancel(&Stop{Grace: -1})
	results, err := r.wait()
	if err != nil {
		t.Fatal(err)
	}
	if e := results[0]; e.Code != 2 || !e.Stopped {
		t.Errorf("%+v", e)
	}
	for _, e := range results[1:] {
		if e.Signal != syscall.SIGKILL {
			t.Errorf("%+v", e)
		}
	}
	if !strings.Contains(text(), "SIGABRT") {
		t.Error("no stack was printed")
	}
}

// deaf ignores SIGTERM; Go's runtime catches SIGABRT.
var deaf = role("deaf", func() {
	signal.Ignore(syscall.SIGTERM)
	os.Stdout.WriteString("ready\n")
	pause()
})

// TestStacksOfPython is the case that matters.
func TestStacksOfPython(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	stderr, text := output(t)
	dir := t.TempDir()
	w := sh(t, "")
	w.Path = "/usr/bin/python3"
	w.Args = []string{"python3", "-X", "faulthandler", "-c", `
import resource, signal, time
resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)) if resource.getrlimit(resource.RLIMIT_CORE)[1] < 0 else None
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def stuck_here():
    print("ready", flush=True)
    time.sleep(1000)
stuck_here()
`}
	w.Dir, w.Stdout, w.Stderr = dir, out, stderr
	r := begin(t, Tree{Workers: []Worker{w}, Grace: 50 * time.Millisecond})
	l.want("ready")
	r.cancel(nil)
	if e := r.one(); e.Signal != syscall.SIGABRT || !e.Stopped || e.Core {
		t.Errorf("%+v", e)
	}
	if got := text(); !strings.Contains(got, "in stuck_here") {
		t.Errorf("no stack: %q", got)
	}
	if files, _ := filepath.Glob(dir + "/*"); len(files) > 0 {
		t.Errorf("it left %v", files)
	}
}

func TestKillAtOnce(t *testing.T) {
	nothingLeft(t)
	for _, row := range []struct {
		name string
		kill func(r *running, kill chan struct{})
	}{
		{"negative grace", func(r *running, _ chan struct{}) { r.cancel(&Stop{Grace: -1}) }},
		{"kill", func(_ *running, kill chan struct{}) { close(kill) }},
		{"stop, then kill", func(r *running, kill chan struct{}) { r.cancel(nil); close(kill) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			out, l := lines(t)
			w := worker(t, stubborn)
			w.Stdout = out
			kill := make(chan struct{})
			r := begin(t, Tree{Workers: []Worker{w}, Kill: kill})
			l.want("ready")
			begun := time.Now()
			row.kill(r, kill)
			if e := r.one(); e.Signal != syscall.SIGKILL || !e.Stopped {
				t.Errorf("%+v", e)
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestGraceOfStop(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	w := worker(t, stubborn)
	w.Stdout = out
	r := begin(t, Tree{Workers: []Worker{w}, Grace: time.Hour})
	l.want("ready")
	r.cancel(&Stop{Grace: 20 * time.Millisecond})
	if e := r.one(); e.Signal != syscall.SIGKILL {
		t.Errorf("%+v", e)
	}
}

func TestCtxEndedBefore(t *testing.T) {
	nothingLeft(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var told []int
	tree := Tree{Workers: []Worker{sh(t, "exit 1"), sh(t, "exit 2")}, Ended: func(i int, r Result) { told = append(told, i) }}
	for _, e := range mustRun(t, ctx, tree) {
		if e.PID != 0 || !e.Stopped || e.ExitCode() != 143 || e.Err != nil {
			t.Errorf("%+v", e)
		}
	}
	if len(told) != 2 {
		t.Errorf("told of %v", told)
	}
}

// TestCtxEndsMeanwhile ends ctx at any time during the start of many workers.
func TestCtxEndsMeanwhile(t *testing.T) {
	nothingLeft(t)
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
		var tree Tree
		for range 16 {
			tree.Workers = append(tree.Workers, sh(t, "exec sleep 1000"))
		}
		var mu sync.Mutex
		seen := map[int]int{}
		tree.Ended = func(i int, r Result) { mu.Lock(); seen[i]++; mu.Unlock() }
		for i, e := range mustRun(t, ctx, tree) {
			if !e.Stopped || e.Signal != syscall.SIGTERM || seen[i] != 1 {
				t.Errorf("%+v, told %d times", e, seen[i])
			}
		}
		cancel()
	}
}

func TestUnusable(t *testing.T) {
	nothingLeft(t)
	for _, tree := range []Tree{{}, {Workers: []Worker{{}}}} {
		if results, err := Run(t.Context(), tree); err == nil || results != nil {
			t.Errorf("%v, %v", results, err)
		}
	}
}

// TestSignalsOnce sends every kind of signal to all workers.
func TestSignalsOnce(t *testing.T) {
	nothingLeft(t)
	signals := make(chan syscall.Signal)
	tree := Tree{Signals: signals}
	var outs []lineReader
	for range 4 {
		out, l := lines(t)
		w := worker(t, counts)
		w.Stdout = out
		tree.Workers = append(tree.Workers, w)
		outs = append(outs, l)
	}
	r := begin(t, tree)
	for _, l := range outs {
		l.want("ready")
	}
	for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGHUP, syscall.SIGINT, syscall.SIGWINCH, syscall.SIGUSR2} {
		signals <- s
		for _, l := range outs {
			l.want(strings.ReplaceAll(s.String(), " ", "-"))
		}
	}
	results, err := r.wait()
	for _, e := range results {
		if e.Code != 7 || e.Stopped {
			t.Errorf("%+v", e)
		}
	}
	if err != nil {
		t.Error(err)
	}
}
