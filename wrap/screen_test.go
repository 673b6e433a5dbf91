package wrap

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestScreenNotRead: a worker that is stopped while nobody reads what it writes has a complete log.
func TestScreenNotRead(t *testing.T) {
	nothingLeft(t)
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer out.Close()
	name := filepath.Join(t.TempDir(), "n")
	log, logged := logFile(t)
	w := worker(t, countingLines, argEnv+"="+name)
	w.Stdout, w.Output = out, &Output{Log: log}
	run := begin(t, Tree{Workers: []Worker{w}, Grace: 10 * time.Millisecond})
	eventually(t, "the pipe is full", func() bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(out.Fd()), Events: unix.POLLOUT}}, 0)
		return err == nil && n == 0
	})
	run.cancel(nil)
	run.one()
	text, _ := os.ReadFile(name)
	if n, _ := strconv.Atoi(string(text)); strings.Count(logged(), "\n") < n {
		t.Errorf("%d lines in the log, of %d", strings.Count(logged(), "\n"), n)
	}
}

// TestSlowScreen: what a worker has written is shown as a whole to a reader that is slow.
func TestSlowScreen(t *testing.T) {
	nothingLeft(t)
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const size = 300_000
	w := worker(t, writingStderr, argEnv+"="+strconv.Itoa(size))
	w.Stdout, w.Stderr, w.Output = out, out, &Output{}
	read := make(chan int)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		total, b := 0, make([]byte, 4096)
		for n, err := r.Read(b); err == nil; n, err = r.Read(b) {
			total += n
			<-tick.C
		}
		read <- total
	}()
	mustRun(t, t.Context(), Tree{Workers: []Worker{w}})
	out.Close()
	if n := <-read; n != size {
		t.Errorf("%d bytes were shown, of %d", n, size)
	}
}

// TestScreenCloses: when the reader of its output closes the pipe, a worker gets SIGPIPE, unless it
// has a log.
func TestScreenCloses(t *testing.T) {
	nothingLeft(t)
	for _, withLog := range []bool{false, true} {
		r, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		w := sh(t, "yes | head -c 5000000")
		w.Stdout, w.Output = out, &Output{}
		want, logged := 128+int(syscall.SIGPIPE), func() string { return "" }
		if withLog {
			want = 0
			w.Output.Log, logged = logFile(t)
		}
		go func() { r.Read(make([]byte, 100)); r.Close() }()
		if r := mustRun(t, t.Context(), Tree{Workers: []Worker{w}})[0]; r.ExitCode() != want {
			t.Errorf("with a log %t: exit code %d, want %d", withLog, r.ExitCode(), want)
		}
		if withLog && len(logged()) != 5000000 {
			t.Errorf("%d bytes in the log", len(logged()))
		}
		out.Close()
	}
}

// TestBackgroundOutput: an agent, which is no process of the terminal's foreground, writes to a
// terminal that stops others (stty tostop).
func TestBackgroundOutput(t *testing.T) {
	nothingLeft(t)
	term, slave := openTerminal(t)
	w := sh(t, "stty tostop <&0; echo shown")
	w.Stdin, w.Stdout, w.Output = slave, slave, &Output{Tag: "[0] "}
	mustRun(t, t.Context(), Tree{Workers: []Worker{w}})
	term.want("[0] shown")
}

func TestLastOutput(t *testing.T) {
	nothingLeft(t)
	for _, c := range []struct {
		name, script string
		capture      bool
		output       *Output
		line         string // "" if nothing is known
	}{
		{"captured", "echo text >&2", true, nil, "text"},
		{"copied", "echo text >&2", false, &Output{Hold: true}, "text"},
		{"copied from stdout", "echo text", false, &Output{Hold: true}, "text"},
		{"both, stdout last", "echo a >&2; sleep 0.1; echo b", false, &Output{Hold: true}, "b"},
		{"both, stderr last", "echo a; sleep 0.1; echo b >&2", false, &Output{Hold: true}, "b"},
		{"blank", "printf 'text\\n\\n'", false, &Output{Hold: true}, "text"},
		{"progress bar", "printf 'text\\n 1%%\\r 2%%'", false, &Output{Hold: true}, "2%"},
		{"nothing written", "true", true, nil, ""},
		{"nothing written that is copied", "true", false, &Output{Hold: true}, ""},
		{"neither", "echo text >&2", false, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, last := sh(t, c.script), new(LastOutput)
			w.Capture, w.Output, w.LastOutput = c.capture, c.output, last
			w.Stdout, _ = logFile(t)
			w.Stderr, _ = logFile(t)
			began := time.Now()
			if _, err := Run(t.Context(), Tree{Workers: []Worker{w}}); err != nil {
				t.Fatal(err)
			}
			end, known := time.Now(), c.line != ""
			for _, at := range []time.Time{last.First(), last.Time()} {
				if at.IsZero() == known || known && (at.Before(began) || at.After(end)) {
					t.Errorf("there was output at %v; the worker ran from %v to %v", at, began, end)
				}
			}
			if all := c.output != nil; last.All() != all {
				t.Errorf("all output is read: %t, want %t", last.All(), all)
			}
			if line := last.Line(); line != c.line {
				t.Errorf("the last line is %q, want %q", line, c.line)
			}
		})
	}
}
