package wrap

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
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
	w := sh(t, `sh -c '
		trap "echo told; exit" TERM
		trap "echo here" USR1
		echo $$
		while :; do sleep 0.01; echo turn; done' &
		exit 0`)
	w.Stdout = out
	ended := make(chan Result, 1)
	signals := make(chan syscall.Signal)
	r := begin(t, Tree{
		Workers: []Worker{w}, Grace: ample, Linger: true, Signals: signals,
		Ended: func(_ int, r Result) { ended <- r },
	})
	left, err := strconv.Atoi(l.next())
	if err != nil {
		t.Fatal(err)
	}
	if e := <-ended; e.Code != 0 || e.Stopped {
		t.Errorf("%+v", e)
	}
	select {
	case signals <- syscall.SIGUSR1: // by now Run would have told the watchdog to stop what is left
	case <-r.done:
		t.Fatal("Run returned though ctx goes on")
	}
	syscall.Kill(left, syscall.SIGUSR1)
	l.await("here")
	for range 20 { // each as long as a tick of the watchdog, which would have found it
		l.want("turn")
	}
	r.cancel(nil)
	r.one()
	l.await("told")
}

func TestStopDelivered(t *testing.T) {
	nothingLeft(t)
	for _, row := range []struct {
		name string
		stop func(began time.Time) *Stop
		want []string
	}{
		{"now", func(time.Time) *Stop { return &Stop{Delivered: syscall.SIGTERM} }, nil},
		{"after its start", func(began time.Time) *Stop { return &Stop{Delivered: syscall.SIGTERM, At: time.Now()} }, nil},
		{"before its start", func(began time.Time) *Stop { return &Stop{Delivered: syscall.SIGTERM, At: began.Add(-time.Second)} }, []string{"terminated"}},
		{"not", func(time.Time) *Stop { return &Stop{} }, []string{"terminated"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			out, l := lines(t)
			w := worker(t, counts)
			w.Stdout = out
			signals := make(chan syscall.Signal)
			began := make(chan time.Time, 1)
			r := begin(t, Tree{Workers: []Worker{w}, Grace: ample, Signals: signals, Started: func(int, int) { began <- time.Now() }})
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

// TestStopNotDelivered: a worker that lives although it would have died of the signal has not had it.
func TestStopNotDelivered(t *testing.T) {
	nothingLeft(t)
	for _, row := range []struct {
		script    string
		delivered syscall.Signal
		spared    bool
	}{
		{"exec cat", syscall.SIGTERM, false},
		{"exec cat", syscall.SIGINT, false},
		{"trap '' INT; echo ready; exec sleep 1000", syscall.SIGTERM, false},
		{"trap '' INT; echo ready; exec sleep 1000", syscall.SIGINT, true},
		{"trap : INT; echo ready; while :; do sleep 0.01; done", syscall.SIGINT, true},
		{"trap : TERM; echo ready; while :; do sleep 0.01; done", syscall.SIGTERM, true},
	} {
		t.Run(fmt.Sprintf("%s %v", row.script, row.delivered), func(t *testing.T) {
			out, l := lines(t)
			w := sh(t, row.script)
			w.Stdout = out
			if row.script == "exec cat" { // which is ready when it has been the shell
				in, say, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer in.Close()
				defer say.Close()
				fmt.Fprintln(say, "ready")
				w.Stdin = in
			}
			grace := 20 * time.Second // which r.one would not wait for
			if row.spared {
				grace = 100 * time.Millisecond
			}
			r := begin(t, Tree{Workers: []Worker{w}, Grace: grace})
			l.want("ready")
			r.cancel(&Stop{Delivered: row.delivered})
			want := syscall.SIGTERM
			if row.spared {
				want = syscall.SIGKILL
			}
			if e := r.one(); e.Signal != want || !e.Stopped {
				t.Errorf("%q, %v: %+v", row.script, row.delivered, e)
			}
		})
	}
}

func TestKillAtOnce(t *testing.T) {
	nothingLeft(t)
	for _, row := range []struct {
		name string
		kill func(r *running)
	}{
		{"kill", func(r *running) { r.kill() }},
		{"stop, then kill", func(r *running) { r.cancel(nil); r.kill() }},
	} {
		t.Run(row.name, func(t *testing.T) {
			out, l := lines(t)
			w := worker(t, stubborn)
			w.Stdout = out
			r := begin(t, Tree{Workers: []Worker{w}, Grace: time.Hour})
			l.want("ready")
			begun := time.Now()
			row.kill(r)
			if e := r.one(); e.Signal != syscall.SIGKILL || !e.Stopped {
				t.Errorf("%+v", e)
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// TestNoGrace: with a Grace of zero SIGKILL follows SIGTERM at once, with no SIGABRT in between.
func TestNoGrace(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	w := worker(t, counts)
	w.Stdout = out
	r := begin(t, Tree{Workers: []Worker{w}})
	l.want("ready")
	begun := time.Now()
	r.cancel(nil)
	if e := r.one(); e.Signal != syscall.SIGKILL || !e.Stopped {
		t.Errorf("%+v", e)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	for len(l.lines) > 0 {
		if line := l.next(); line != "terminated" {
			t.Errorf("the worker got %q", line)
		}
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
		tree := Tree{Grace: ample}
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
	for _, tree := range []Tree{
		{},
		{Workers: []Worker{{}}},
		{Workers: []Worker{sh(t, "exit 0")}, Grace: -1},
	} {
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
