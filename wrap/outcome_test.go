package wrap

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// These tests and those of stacks_test.go check the rows of the table in doc.go.

// printingSignals prints the name of every signal that it receives and exits with 7 at SIGUSR2.
var printingSignals = role("printing signals", func() {
	c := make(chan os.Signal, 16)
	signal.Notify(c)
	os.Stdout.WriteString("ready\n")
	for s := range c {
		if s == syscall.SIGURG {
			continue // sent by the Go runtime
		}
		os.Stdout.WriteString(strings.ReplaceAll(s.String(), " ", "-") + "\n")
		if s == syscall.SIGUSR2 {
			os.Exit(7)
		}
	}
})

// TestStopDelivered: only workers started after Stop.At receive SIGTERM.
func TestStopDelivered(t *testing.T) {
	nothingLeft(t)
	for _, row := range []struct {
		name string
		stop func(startedAt time.Time) *Stop
		want []string
	}{
		{"now", func(time.Time) *Stop { return &Stop{Delivered: syscall.SIGTERM} }, nil},
		{"after its start", func(time.Time) *Stop {
			return &Stop{Delivered: syscall.SIGTERM, At: time.Now()}
		}, nil},
		{"before its start", func(startedAt time.Time) *Stop {
			return &Stop{Delivered: syscall.SIGTERM, At: startedAt.Add(-time.Second)}
		}, []string{"terminated"}},
		{"not", func(time.Time) *Stop { return &Stop{} }, []string{"terminated"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			out, l := lines(t)
			w := worker(t, printingSignals)
			w.Stdout = out
			signals := make(chan Event)
			startedAt := make(chan time.Time, 1)
			r := begin(t, Tree{
				Workers: []Worker{w}, Grace: longGrace, Signals: signals,
				Started: func(int, int) { startedAt <- time.Now() },
			})
			l.want("ready")
			r.cancel(row.stop(<-startedAt))
			l.want(row.want...)
			signals <- Event{Signal: syscall.SIGUSR2}
			l.want("user-defined-signal-2")
			if e := r.one(); e.Code != 7 || !e.Stopped {
				t.Errorf("%+v, want Code 7 and Stopped", e)
			}
		})
	}
}

// TestStopNotDelivered: a worker that still runs although Stop.Delivered would have killed it has
// not received it, and receives SIGTERM at once, others that run after half of the grace then.
func TestStopNotDelivered(t *testing.T) {
	nothingLeft(t)
	for _, row := range []struct {
		script    string
		delivered syscall.Signal
		received  bool
		signal    syscall.Signal // ends it
	}{
		{"exec cat", syscall.SIGTERM, false, syscall.SIGTERM},
		{"exec cat", syscall.SIGINT, false, syscall.SIGTERM},
		{"trap '' INT; echo ready; exec sleep 1000", syscall.SIGTERM, false, syscall.SIGTERM},
		{"trap '' INT; echo ready; exec sleep 1000", syscall.SIGINT, true, syscall.SIGTERM},
		{"trap : INT; echo ready; while :; do sleep 0.01; done", syscall.SIGINT, true, syscall.SIGTERM},
		{"trap : TERM; echo ready; while :; do sleep 0.01; done", syscall.SIGTERM, true, syscall.SIGKILL},
	} {
		t.Run(fmt.Sprintf("%s %v", row.script, row.delivered), func(t *testing.T) {
			out, l := lines(t)
			w := sh(t, row.script)
			w.Stdout = out
			if row.script == "exec cat" { // prints "ready" after the shell has executed it
				in, feed, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer in.Close()
				defer feed.Close()
				fmt.Fprintln(feed, "ready")
				w.Stdin = in
			}
			grace := 20 * time.Second // as long as r.one waits
			if row.received {
				grace = 200 * time.Millisecond
			}
			started := make(chan struct{}) // what is started later receives SIGTERM at once
			r := begin(t, Tree{
				Workers: []Worker{w}, Grace: grace, Started: func(int, int) { close(started) },
			})
			l.want("ready")
			<-started
			stopped := time.Now()
			r.cancel(&Stop{Delivered: row.delivered})
			if e := r.one(); e.Signal != row.signal || !e.Stopped {
				t.Errorf("%+v, want %v and Stopped", e, row.signal)
			}
			if early := time.Since(stopped) < grace/2; early == row.received {
				t.Errorf("it ended before half of the grace: %t, want %t", early, !row.received)
			}
		})
	}
}

// TestCtxEndsDuringStart ends ctx at different times while workers are being started.
func TestCtxEndsDuringStart(t *testing.T) {
	nothingLeft(t)
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
		tree := Tree{Grace: longGrace}
		for range 16 {
			tree.Workers = append(tree.Workers, sh(t, "exec sleep 1000"))
		}
		var mu sync.Mutex
		seen := map[int]int{}
		tree.Ended = func(i int, r Result) { mu.Lock(); seen[i]++; mu.Unlock() }
		for i, e := range mustRun(t, ctx, tree) {
			if !e.Stopped || e.Signal != syscall.SIGTERM || seen[i] != 1 {
				t.Errorf("worker %d: %+v, Ended called %d times", i, e, seen[i])
			}
		}
		cancel()
	}
}
