package integration

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// runSaver is a worker that saves a snapshot for some seconds when it receives SIGTERM, if it is on
// this host:
//
//	saver DIR HOST
//
// It has a child, like one of a DataLoader, and another one in a session of its own. Each of the
// three appends the time to a file in DIR/ATTEMPT-beats as long as it runs; see readBeats. The
// worker writes DIR/ATTEMPT/RANK like inAttempts, and ends with 0 when DIR/finish exists.
func runSaver(args []string) int {
	dir, attempt, rank := args[0], os.Getenv("RDZV_ATTEMPT"), os.Getenv("RANK")
	beats := filepath.Join(dir, attempt+"-beats")
	own := filepath.Join(dir, attempt)
	host, err := os.Hostname()
	for _, d := range []string{beats, own} {
		if e := os.MkdirAll(d, 0o700); e != nil {
			err = e
		}
	}
	if err != nil {
		return reportError(err)
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	for _, session := range []bool{false, true} {
		child := exec.Command("/proc/self/exe", "beat", filepath.Join(beats, fmt.Sprintf("%s-child-%t", rank, session)))
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
		if err := child.Start(); err != nil {
			return reportError(err)
		}
	}
	go beat(filepath.Join(beats, rank))
	draft := filepath.Join(dir, fmt.Sprint("draft", os.Getpid()))
	text := fmt.Sprintln(os.Getpid(), host, os.Getenv("MASTER_ADDR"))
	if err := os.WriteFile(draft, []byte(text), 0o600); err != nil {
		return reportError(err)
	}
	if err := os.Rename(draft, filepath.Join(own, rank)); err != nil {
		return reportError(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	for {
		select {
		case <-terminated:
			if host == args[1] {
				time.Sleep(saveTime)
			}
			return 0
		case <-tick.C:
			if _, err := os.Stat(filepath.Join(dir, "finish")); err == nil {
				return 0
			}
		}
	}
}

// saveTime is longer than the workers of a lost agent may run after SIGTERM.
const saveTime = 8 * time.Second

// runBeat is a child of runSaver.
func runBeat(args []string) int { return beat(args[0]) }

const beatTime = 2 * time.Millisecond

func beat(file string) int {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return reportError(err)
	}
	for {
		fmt.Fprintln(f, int64(clock()))
		time.Sleep(beatTime)
	}
}

// clock is CLOCK_MONOTONIC, which all hosts of a cluster share.
func clock() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// beats are when processes of one attempt have run, in order.
type beats []time.Duration

func readBeats(t *testing.T, dir string, attempt int) (all beats) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, fmt.Sprint(attempt, "-beats"), "*"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64); err == nil {
				all = append(all, time.Duration(n))
			}
		}
	}
	if slices.Sort(all); len(all) == 0 {
		t.Fatalf("no process of attempt %d has run", attempt)
	}
	return all
}

// before is the last beat before a time.
func (b beats) before(at time.Duration) time.Duration {
	i, _ := slices.BinarySearch(b, at)
	return b[max(0, i-1)]
}
