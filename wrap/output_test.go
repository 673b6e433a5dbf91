package wrap

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rdzv/wrap/internal/parent"
	"rdzv/wrap/internal/tee"
)

// logFile returns a log, and a function that returns what is in it.
func logFile(t *testing.T) (*os.File, func() string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "log")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, func() string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

func TestOutput(t *testing.T) {
	nothingLeft(t)
	const inTurn = "i=0; while [ $i -lt 500 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done"
	var both, out, err strings.Builder
	for i := range 500 {
		fmt.Fprintf(&both, "o%d\ne%d\n", i, i)
		fmt.Fprintf(&out, "[1] o%d\n", i)
		fmt.Fprintf(&err, "[1] e%d\n", i)
	}
	for _, c := range []struct {
		name, script   string
		output         Output
		log, show, one bool // there is a log; it is shown; stdout and stderr are shown at one place
		shown, errors  string
		stderr, logged string
	}{
		{"tagged", inTurn, Output{Tag: "[1] ", Hold: true}, false, true, false,
			out.String(), err.String(), strings.ReplaceAll(err.String(), "[1] ", ""), ""},
		{"in order at one place", inTurn, Output{Hold: true}, false, true, true,
			both.String(), "", both.String(), ""},
		{"in order in a log", inTurn, Output{}, true, true, false,
			both.String(), "", both.String(), both.String()},
		{"only a log", inTurn, Output{}, true, false, false, "", "", both.String(), both.String()},
		{"a log has no tags and no other end", "printf 'a\nb'", Output{Tag: "[1] ", Hold: true},
			true, true, true, "[1] a\n[1] b\n", "", "a\nb", "a\nb"},
		{"a descendant", "(trap '' TERM; while [ $PPID != 1 ]; do :; done; echo z) & echo a",
			Output{}, true, true, true, "a\n", "", "a\n", "a\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := sh(t, c.script)
			w.Output = &c.output
			logged := func() string { return "" }
			if c.log {
				c.output.Log, logged = logFile(t)
			}
			stdout, shown := output(t)
			stderr, errors := output(t)
			if w.Stdout, w.Stderr = stdout, stderr; c.one {
				w.Stderr = stdout
			}
			if !c.show {
				w.Stdout, w.Stderr = nil, nil
			}
			r := mustRun(t, t.Context(), Tree{Workers: []Worker{w}})[0]
			for _, text := range []struct{ what, got, want string }{
				{"stdout", shown(), c.shown}, {"stderr", errors(), c.errors},
				{"log", logged(), c.logged}, {"Result.Stderr", string(r.Stderr), c.stderr},
			} {
				if text.got != text.want {
					t.Errorf("%s: %.300q, want %.300q", text.what, text.got, text.want)
				}
			}
		})
	}
}

// TestOutputManyBytes: what several workers write at full speed is complete, and Result.Stderr has
// the end.
func TestOutputManyBytes(t *testing.T) {
	nothingLeft(t)
	const size = 32 << 20
	var tree Tree
	var texts []func() string
	out, shown := output(t)
	for i := range 3 {
		w := worker(t, writingStderr, argEnv+"="+strconv.Itoa(size))
		log, text := logFile(t)
		w.Output = &Output{Log: log}
		if i == 0 {
			w.Stdout = out
		}
		tree.Workers, texts = append(tree.Workers, w), append(texts, text)
	}
	results := mustRun(t, t.Context(), tree)
	want := shown()
	for i, text := range texts {
		if got := text(); len(got) != size || got != want {
			t.Errorf("worker %d: the log has %d bytes of %d, or others", i, len(got), size)
		}
		if !strings.HasSuffix(want, string(results[i].Stderr)) || len(results[i].Stderr) != tee.TailSize {
			t.Errorf("worker %d: Result.Stderr has %d other bytes", i, len(results[i].Stderr))
		}
	}
}

// linesEnv is how many lines countingLines writes; without it, it does not end.
const linesEnv = "WRAP_TEST_LINES"

// countingLines writes numbered lines to stdout, and after each its number to the file argEnv.
var countingLines = role("counting lines", func() {
	f, err := os.OpenFile(os.Getenv(argEnv), os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		os.Exit(8)
	}
	lines, _ := strconv.Atoi(os.Getenv(linesEnv))
	var b []byte
	for n := 1; lines == 0 || n <= lines; n++ {
		b = append(strconv.AppendInt(b[:0], int64(n), 10), '\n')
		os.Stdout.Write(b)
		f.WriteAt([]byte(fmt.Sprintf("%09d", n)), 0)
	}
})

// agentOfCounting is an agent whose worker has a log, argEnv.log.
var agentOfCounting = role("agent of counting", func() {
	name := os.Getenv(argEnv)
	log, err := os.OpenFile(name+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		os.Exit(8)
	}
	env := []string{roleEnv + "=" + countingLines, argEnv + "=" + name,
		markerEnv + "=" + os.Getenv(markerEnv), linesEnv + "=" + os.Getenv(linesEnv)}
	w := Worker{Path: "/proc/self/exe", Env: env, Stdout: os.Stdout, Output: &Output{Log: log}}
	results, err := Run(ctxNever, Tree{Workers: []Worker{w}})
	fmt.Println(results, err)
})

// TestOutputOfKilled: nothing that a worker had written is missing in its log when it, or its
// agent, has been killed, or the agent when the worker had ended and nobody read its output.
func TestOutputOfKilled(t *testing.T) {
	nothingLeft(t)
	for _, victim := range []string{"worker", "agent", "agent of ended worker"} {
		t.Run(victim, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "n")
			written := func() int {
				text, _ := os.ReadFile(name)
				n, _ := strconv.Atoi(string(text))
				return n
			}
			agent := exec.Command("/proc/self/exe")
			agent.Env = append(os.Environ(), roleEnv+"="+agentOfCounting, argEnv+"="+name,
				markerEnv+"="+marker(t))
			pid := func() int { return agent.Process.Pid }
			ready := func() bool { return written() > 20000 }
			worker := func() (pid int) {
				for _, p := range marked(marker(t)) {
					if p.PID != agent.Process.Pid && p.Name != parent.Name {
						pid = p.PID
					}
				}
				return pid
			}
			switch victim {
			case "worker":
				pid = worker
			case "agent of ended worker":
				read, write, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer read.Close()
				defer write.Close()
				agent.Stdout = write
				const lines = 50_000 // less than the pipes hold
				agent.Env = append(agent.Env, linesEnv+"="+strconv.Itoa(lines))
				ready = func() bool { return written() == lines && worker() == 0 }
			}
			startMarked(t, agent)
			eventually(t, "lines are written", ready)
			syscall.Kill(pid(), syscall.SIGKILL)
			eventually(t, "all have ended", func() bool { return len(marked(marker(t))) == 0 })
			log, err := os.ReadFile(name + ".log")
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "the log is complete", func() bool {
				log, _ = os.ReadFile(name + ".log")
				return bytes.Count(log, []byte("\n")) >= written()
			})
			for i, line := range bytes.Split(bytes.TrimSpace(log), []byte("\n")) {
				if string(line) != strconv.Itoa(i+1) {
					t.Fatalf("line %d of the log is %q", i+1, line)
				}
			}
			t.Logf("%d lines", written())
		})
	}
}

// TestLogLost: a log that cannot be written is given up, which is reported with the number of bytes
// that it lacks. The worker sees no error, and what it writes is shown.
func TestLogLost(t *testing.T) {
	nothingLeft(t)
	read, blocked, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer blocked.Close()
	capacity, err := unix.FcntlInt(blocked.Fd(), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	const size = 3 << 20
	for _, c := range []struct {
		log    *os.File
		reason error
		kept   int64 // at most
	}{{full, syscall.ENOSPC, 0}, {blocked, ErrLogBlocked, int64(capacity)}} {
		w := worker(t, writingStderr, argEnv+"="+strconv.Itoa(size))
		out, shown := output(t)
		w.Stdout, w.Output = out, &Output{Log: c.log}
		var reports []int64
		r := mustRun(t, t.Context(), Tree{
			Workers: []Worker{w},
			LogLost: func(i int, reason error, bytes int64) {
				if i != 0 || !errors.Is(reason, c.reason) {
					t.Errorf("worker %d: %v, want %v", i, reason, c.reason)
				}
				reports = append(reports, bytes)
			},
		})[0]
		if n := len(shown()); r.Code != 0 || n != size {
			t.Errorf("%v: exit code %d, %d bytes shown, want 0 and %d", c.reason, r.Code, n, size)
		}
		if len(reports) != 2 || reports[0] != 0 || reports[1] < size-c.kept || reports[1] > size {
			t.Errorf("%v: reported %d, want 0 and %d", c.reason, reports, size)
		}
	}
}

// TestOutputLost: what cannot be shown is reported once, with its length. If it was on stdout, and
// no log has it, the worker then gets SIGPIPE, and one that has already succeeded has failed.
func TestOutputLost(t *testing.T) {
	nothingLeft(t)
	const untilPipe = `while echo 234567; do :; done`
	for _, c := range []struct {
		name, script, full string // full is the stream that leads to a full disk
		log                bool
		code               int
		lost               string // the stream and, unless the worker writes for ever, the bytes
	}{
		{"a worker that has succeeded", "echo hi", "stdout", false, 1, "stdout 3"},
		{"another failure is kept", "echo hi; exit 7", "stdout", false, 7, "stdout 3"},
		{"a worker that goes on", untilPipe, "stdout", false, 128 + int(syscall.SIGPIPE), "stdout"},
		{"both streams there", untilPipe, "both", false, 128 + int(syscall.SIGPIPE), "stdout"},
		{"a log has it", "echo hi; echo x >&2", "stdout", true, 0, "stdout 5"},
		{"stderr", "echo hi >&2; echo there >&2", "stderr", false, 0, "stderr 9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer full.Close()
			w := sh(t, c.script)
			w.Output = &Output{Tag: "[1] "}
			w.Stdout, w.Stderr = full, full
			shown := func() string { return "" }
			switch c.full {
			case "stdout":
				w.Stderr, shown = output(t)
			case "stderr":
				w.Stdout, shown = output(t)
			}
			if c.log {
				w.Output.Log, _ = logFile(t)
			}
			var lost []string
			r := mustRun(t, t.Context(), Tree{
				Workers: []Worker{w},
				OutputLost: func(i int, stream string, reason error, bytes int64) {
					if i != 0 || reason != syscall.ENOSPC || bytes == 0 {
						t.Errorf("worker %d: %v, %d bytes", i, reason, bytes)
					}
					lost = append(lost, fmt.Sprint(stream, " ", bytes))
				},
			})[0]
			if r.ExitCode() != c.code {
				t.Errorf("exit code %d, want %d", r.ExitCode(), c.code)
			}
			if len(lost) != 1 || !strings.HasPrefix(lost[0], c.lost) {
				t.Errorf("lost %q, want %q once", lost, c.lost)
			}
			_, failed := errors.AsType[*OutputError](r.Err)
			if c.code != 0 && c.code != 7 && !failed || c.code == 0 && r.Err != nil {
				t.Errorf("error %v", r.Err)
			}
			shown()
		})
	}
}

// TestOutputNotRead: what nobody reads when nothing of the tree is left is reported.
func TestOutputNotRead(t *testing.T) {
	nothingLeft(t)
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer out.Close()
	const size = 100_000
	w := sh(t, fmt.Sprintf("head -c %d /dev/zero", size))
	w.Stdout, w.Output = out, &Output{}
	var lost int64
	result := mustRun(t, t.Context(), Tree{
		Workers: []Worker{w},
		OutputLost: func(_ int, stream string, reason error, bytes int64) {
			if stream != "stdout" || reason != ErrNotRead {
				t.Errorf("%s: %v, want stdout: %v", stream, reason, ErrNotRead)
			}
			lost += bytes
		},
	})[0]
	if result.Code != 0 || lost < size-1<<16 || lost > size {
		t.Errorf("exit code %d, %d of %d bytes reported", result.Code, lost, size)
	}
}
