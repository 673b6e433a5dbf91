package wrap

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/procfs"
)

// TestGone: when it is called, all is over but the watchdog; and whatever becomes of that, Run returns what it has to.
func TestGone(t *testing.T) {
	for _, row := range []struct {
		name string
		do   func(dog, sentinel int)
	}{
		{"nothing", func(_, _ int) {}},
		{"watchdog killed", func(dog, _ int) { syscall.Kill(dog, syscall.SIGKILL) }},
		{"sentinel killed", func(_, sentinel int) { syscall.Kill(sentinel, syscall.SIGKILL) }},
		{"sentinel stopped", func(_, sentinel int) { syscall.Kill(sentinel, syscall.SIGSTOP) }},
		{"watchdog stopped", func(dog, _ int) { syscall.Kill(dog, syscall.SIGSTOP) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			nothingLeft(t)
			source := Signals(syscall.SIGUSR1)
			defer source.Close()
			var dog, ended, called int
			tree := Tree{Workers: []Worker{sh(t, "exit 3"), sh(t, "exit 4")}, Source: source}
			tree.Ended = func(int, Result) { ended++ }
			other := exec.Command("sleep", "1000")
			tree.Gone = func() {
				called++
				if err := other.Start(); err != nil {
					t.Error(err)
				}
				var sentinel int
				if dog, sentinel = watchdogOf(t, os.Getpid()); ended != 2 || dead(dog) {
					t.Errorf("%d workers have ended, the watchdog is dead: %v", ended, dead(dog))
				}
				row.do(dog, sentinel)
			}
			results, err := Run(t.Context(), tree)
			if other.Process.Signal(syscall.SIGTERM) != nil || other.Wait() == nil || other.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
				t.Errorf("a process of somebody else ended with %v", other.ProcessState)
			}
			if err != nil {
				t.Fatal(err)
			}
			survivors(t)
			if results[0].Code != 3 || results[1].Code != 4 || called != 1 {
				t.Errorf("%+v, Gone was called %d times", results, called)
			}
			if _, err := procfs.Read(procfs.System, dog); err == nil {
				t.Error("the watchdog is still there")
			}
		})
	}
}

// TestGonePanics: the watchdog does not outlive Run.
func TestGonePanics(t *testing.T) {
	nothingLeft(t)
	tree := Tree{Workers: []Worker{sh(t, "exit 3")}, Gone: func() { panic("it cannot be") }}
	func() {
		defer func() { _ = recover() }()
		_, _ = Run(t.Context(), tree)
		t.Error("Run returned")
	}()
	survivors(t)
}

// TestStoppedSentinelIsWaitedForOnce: of many workers that end by themselves, only the first waits for it at length.
func TestStoppedSentinelIsWaitedForOnce(t *testing.T) {
	nothingLeft(t)
	in, say, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	tree := Tree{Source: Signals(syscall.SIGUSR1), Gone: func() {}}
	defer tree.Source.Close()
	const n = 40
	up := make(chan bool, n)
	tree.Started = func(int, int) { up <- true }
	for range n {
		w := sh(t, "read line; exit 3")
		w.Stdin = in
		tree.Workers = append(tree.Workers, w)
	}
	r := begin(t, tree)
	for range n {
		<-up
	}
	_, sentinel := watchdogOf(t, os.Getpid())
	syscall.Kill(sentinel, syscall.SIGSTOP)
	say.Close()
	if results, err := r.wait(); err != nil || results[n-1].Code != 3 {
		t.Errorf("%+v, %v", results, err)
	}
}

// TestGoneIsIdle: while it waits to be let go, the watchdog sleeps.
func TestGoneIsIdle(t *testing.T) {
	nothingLeft(t)
	tree := Tree{Workers: []Worker{sh(t, "exit 0")}, Source: Signals(syscall.SIGUSR1)}
	defer tree.Source.Close()
	tree.Gone = func() {
		dog, _ := watchdogOf(t, os.Getpid())
		last, since := -1, time.Now()
		eventually(t, "no thread of it wakes for as long as ten of its ticks", func() bool {
			if n := waits(t, dog); n != last {
				last, since = n, time.Now()
			}
			return time.Since(since) >= 100*time.Millisecond
		})
	}
	mustRun(t, t.Context(), tree)
}

// waits is how often the threads of pid have waited.
func waits(t *testing.T, pid int) (n int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for line := range strings.Lines(string(text)) {
			if count, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
				one, err := strconv.Atoi(strings.TrimSpace(count))
				if err != nil {
					t.Fatal(err)
				}
				n += one
			}
		}
	}
	return n
}
