package wrap

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/procfs"
)

// TestSentinelKilled: the tree continues without its sentinel.
func TestSentinelKilled(t *testing.T) {
	nothingLeft(t)
	cmd, _ := startAgent(t, 1, nil)
	dog, sentinel := watchdogOf(t, cmd.Process.Pid)
	syscall.Kill(sentinel, syscall.SIGKILL)
	eventually(t, "the sentinel has ended", func() bool { return dead(sentinel) })
	if n := len(marked(marker(t))); dead(dog) || n < 10 {
		t.Errorf("watchdog is dead: %v; %d processes of the tree run", dead(dog), n)
	}
}

// TestHolderKilled: the tree continues without its holder, and if the watchdog is killed then, the
// agent kills it.
func TestHolderKilled(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(dog int, feed *os.File)
		code int
		err  error
	}{
		{"worker ends", func(_ int, feed *os.File) { feed.Close() }, 3, nil},
		{"watchdog killed", func(dog int, _ *os.File) { syscall.Kill(dog, syscall.SIGKILL) }, 0,
			ErrWatchdog},
	} {
		t.Run(row.name, func(t *testing.T) {
			nothingLeft(t)
			in, feed, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			defer feed.Close()
			out, l := lines(t)
			w := sh(t, "(setsid sleep 1000 &) ; echo ready; read line; exit 3")
			w.Stdin, w.Stdout = in, out
			r := begin(t, Tree{Workers: []Worker{w}})
			l.want("ready")
			guards.Lock()
			for holder, dog := range guards.watchdogs {
				syscall.Kill(holder, syscall.SIGKILL)
				eventually(t, "the watchdog is a child of this process", func() bool {
					p, err := procfs.Read(procfs.System, dog)
					return err == nil && p.Parent == os.Getpid()
				})
				row.end(dog, feed)
			}
			guards.Unlock()
			if results, err := r.wait(); err != row.err || results[0].Code != row.code {
				t.Errorf("Run = %+v, %v, want Code %d, %v", results, err, row.code, row.err)
			}
		})
	}
}

// TestWatchdogSurvives: watchdog and sentinel survive every signal except SIGKILL and SIGSTOP, and
// those that thread libraries use.
func TestWatchdogSurvives(t *testing.T) {
	nothingLeft(t)
	cmd, _ := startAgent(t, 1, nil)
	dog, sentinel := watchdogOf(t, cmd.Process.Pid)
	for s := syscall.Signal(1); s <= 64; s++ {
		switch s {
		case syscall.SIGKILL, syscall.SIGSTOP, 32, 33, 34:
		default:
			syscall.Kill(dog, s)
			syscall.Kill(sentinel, s)
		}
	}
	for _, pid := range []int{dog, sentinel} {
		eventually(t, "watchdog and sentinel sleep", func() bool {
			s, err := procfs.Read(procfs.System, pid)
			return err != nil || s.State == 'S'
		})
	}
	if dead(dog) || dead(sentinel) {
		t.Errorf("watchdog is dead: %v, sentinel is dead: %v", dead(dog), dead(sentinel))
	}
}

// TestWatchdogStopped: a watchdog that is stopped (SIGSTOP) and not continued is killed, and the
// agent kills the tree.
func TestWatchdogStopped(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	w := sh(t, `(setsid sleep 1000 &) ; echo ready; exec sleep 1000`)
	w.Stdout = out
	r := begin(t, Tree{Workers: []Worker{w}, Grace: time.Millisecond})
	l.want("ready")
	guards.Lock()
	for _, pid := range guards.watchdogs {
		syscall.Kill(pid, syscall.SIGSTOP)
		eventually(t, "the watchdog is stopped", func() bool {
			state, err := readState(pid)
			return err != nil || state == 'T'
		})
	}
	guards.Unlock()
	results, err := r.wait()
	if !errors.Is(err, ErrWatchdog) || results[0].Signal != syscall.SIGKILL ||
		!errors.Is(results[0].Err, ErrWatchdog) {
		t.Errorf("Run = %+v, %v, want SIGKILL and %v in both", results, err, ErrWatchdog)
	}
}

// TestSilentSentinel: many workers exit, and only the first of them waits long for a sentinel that
// is stopped.
func TestSilentSentinel(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		t.Run(s.String(), func(t *testing.T) { exitWithSentinel(t, s) })
	}
}

// exitWithSentinel makes many workers exit at the same time after the sentinel has received s.
func exitWithSentinel(t *testing.T, s syscall.Signal) {
	nothingLeft(t)
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	tree := Tree{Source: Signals(syscall.SIGUSR1)}
	defer tree.Source.Close()
	const n = 40
	started := make(chan bool, n)
	tree.Started = func(int, int) { started <- true }
	for range n {
		w := sh(t, "read line; exit 3")
		w.Stdin = in
		tree.Workers = append(tree.Workers, w)
	}
	r := begin(t, tree)
	for range n {
		<-started
	}
	_, sentinel := watchdogOf(t, os.Getpid())
	syscall.Kill(sentinel, s)
	feed.Close()
	if results, err := r.wait(); err != nil || results[n-1].Code != 3 {
		t.Errorf("Run = %+v, %v, want Code 3 and no error", results, err)
	}
}

// TestSignalsAtStart: a SIGTERM to holder or watchdog as soon as they exist changes nothing.
func TestSignalsAtStart(t *testing.T) {
	nothingLeft(t)
	sent := 0
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		var hunt sync.WaitGroup
		hunt.Go(func() {
			for signalled := map[string]bool{}; ctx.Err() == nil; {
				procfs.FindDescendant(procfs.System, os.Getpid(), func(pid int) bool {
					args := procfs.Arguments(procfs.System, pid)
					guard := len(args) == 4 && strings.HasPrefix(args[0], "tree-")
					if guard && !signalled[args[0]] {
						signalled[args[0]] = true
						syscall.Kill(pid, syscall.SIGTERM)
						sent++
					}
					return false
				})
			}
		})
		results, err := Run(t.Context(), Tree{Workers: []Worker{sh(t, "exit 3")}})
		cancel()
		hunt.Wait()
		if err != nil || results[0].Code != 3 {
			t.Errorf("Run = %+v, %v, want Code 3 and no error", results, err)
		}
	}
	if sent == 0 {
		t.Error("no signal was sent")
	}
}
