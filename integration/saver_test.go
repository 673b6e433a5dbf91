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
// It and two children write beats; see startBeats. The worker writes DIR/ATTEMPT/RANK like
// inAttempts, and ends with 0 when DIR/finish exists.
func runSaver(args []string) int {
	dir, attempt, rank := args[0], os.Getenv("RDZV_ATTEMPT"), os.Getenv("RANK")
	own := filepath.Join(dir, attempt)
	host, err := os.Hostname()
	if e := os.MkdirAll(own, 0o700); e != nil {
		err = e
	}
	if err != nil {
		return reportError(err)
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	if _, err := startBeats(dir, attempt, rank, "end"); err != nil {
		return reportError(err)
	}
	draft := filepath.Join(dir, fmt.Sprint("draft", os.Getpid()))
	text := fmt.Sprintln(os.Getpid(), host, os.Getenv("MASTER_ADDR"))
	if err := os.WriteFile(draft, []byte(text), 0o600); err != nil {
		return reportError(err)
	}
	if err := os.Rename(draft, filepath.Join(own, rank)); err != nil {
		return reportError(err)
	}
	tick := time.NewTicker(beatTime)
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

// startBeats has three processes append the time to a file in DIR/ATTEMPT-beats as long as they run
// (see readBeats): this one, a child like one of a DataLoader, and another child in a session of its
// own, whose pid it returns. onSIGTERM says what the children do: "end" or "ignore" it.
func startBeats(dir, attempt, rank, onSIGTERM string) (other int, err error) {
	beats := filepath.Join(dir, attempt+"-beats")
	if err := os.MkdirAll(beats, 0o700); err != nil {
		return 0, err
	}
	for _, session := range []bool{false, true} {
		file := filepath.Join(beats, fmt.Sprintf("%s-child-%t", rank, session))
		child := exec.Command("/proc/self/exe", "beat", file, onSIGTERM)
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
		if err := child.Start(); err != nil {
			return 0, err
		}
		other = child.Process.Pid
	}
	go beat(filepath.Join(beats, rank))
	return other, nil
}

// runBeat is a child of startBeats.
func runBeat(args []string) int {
	if args[1] == "ignore" {
		signal.Ignore(syscall.SIGTERM)
	}
	return beat(args[0])
}

const beatTime = 30 * time.Millisecond

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

// beats are when processes of one attempt have run, in order; none if none have.
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
	slices.Sort(all)
	return all
}

// before is the last beat before a time.
func (b beats) before(at time.Duration) time.Duration {
	i, _ := slices.BinarySearch(b, at)
	return b[max(0, i-1)]
}
