package wrap

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// These tests, and those of stacks_test.go, are the rows of the outcome table in doc.go.

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

// TestDeaf: of three workers only the one that ignores SIGTERM and catches SIGABRT shows its stack, and nothing ends the run.
// deaf ignores SIGTERM; Go's runtime catches SIGABRT.
// TestStacksOfPython is the case that matters.
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
