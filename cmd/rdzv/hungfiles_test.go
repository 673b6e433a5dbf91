package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/proctest"
)

// A file system that does not answer delays the start of an agent by 4 s, and the end of the job by
// at most 5 s, although two agents have a report to write: the one that hosts the store, here that
// of rank 0, and then the one whose worker failed.
func TestReportOnHungFileSystem(t *testing.T) {
	t.Parallel()
	if !proctest.MayMount(t) {
		return
	}
	dir := hungFileSystem(t)
	env := baseEnv(t.TempDir())
	start := func(rank string) (*exec.Cmd, *bufio.Reader) {
		args := strings.Fields("exec --nodes 2 --store 127.0.0.1 --job hung --node-rank " + rank)
		args = append(args, "--report", filepath.Join(dir, "report"), "--")
		args = append(args, "sh", "-c", "[ $RANK = 0 ] && exec sleep 100; exit 7")
		cmd := exec.CommandContext(t.Context(), "rdzv", args...)
		cmd.Env = env
		stderr, err := cmd.StderrPipe()
		fatalIf(t, err)
		fatalIf(t, cmd.Start())
		return cmd, bufio.NewReader(stderr)
	}
	rank0, lines := start("0")
	for _, want := range []string{
		"cannot look at the file of --report", "no other agent has connected",
	} {
		if line, err := lines.ReadString('\n'); !strings.Contains(line, want) {
			t.Fatalf("the first agent printed %q, %v; want %q", line, err, want)
		}
	}
	begin := time.Now()
	rank1, lines1 := start("1")
	var stderr strings.Builder
	lines.WriteTo(&stderr)
	lines1.WriteTo(&stderr)
	rank0.Wait()
	rank1.Wait()
	took := time.Since(begin)
	t.Logf("the job ended after %v", took)
	codes := []int{rank0.ProcessState.ExitCode(), rank1.ProcessState.ExitCode()}
	if !slices.Equal(codes, []int{7, 7}) || took > 20*time.Second {
		t.Errorf("the agents ended with %d after %v, want exit status 7 after 9 s", codes, took)
	}
	if strings.Count(stderr.String(), "cannot write the report") != 2 {
		t.Errorf("rdzv printed %q, want twice that the report cannot be written",
			stderr.String())
	}
}

// An agent that waits for a file system ends with the first signal, whatever it reads or writes
// there: within 1 s, for a report. HUNG stands for the file system. The signal is sent when the
// agent has printed a line with the text after, if there is one.
func TestSignalsOnHungFileSystem(t *testing.T) {
	if !proctest.MayMount(t) {
		return
	}
	for _, c := range []struct{ name, env, args, after string }{
		{"token file", "A=", "--nodes 2 --store 127.0.0.1 --token-file HUNG/file -- true", ""},
		{"runtime directory", "TMPDIR=HUNG", "-- true", ""},
		{"home directory", "HOME=HUNG", "--nodes 2 -- true", ""},
		{"program", "A=", "-- HUNG/file", ""},
		{"exports", "A=", "--export-file HUNG/file -- true", ""},
		{"directory", "A=", "--chdir HUNG/dir -- true", ""},
		{"look at a report", "A=", "--report HUNG/file -- true", ""},
		{"report", "A=", "--report HUNG/file -- ls /none", "/none"},
		{"report of an error", "A=", "--report HUNG/file -- /none", "/none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := hungFileSystem(t) // its own: others would wait for the kernel's locks
			args := strings.Fields("exec " + strings.ReplaceAll(c.args, "HUNG", dir))
			cmd := exec.CommandContext(t.Context(), "rdzv", args...)
			cmd.Env = append(baseEnv(t.TempDir()), strings.ReplaceAll(c.env, "HUNG", dir))
			stderr, err := cmd.StderrPipe()
			fatalIf(t, err)
			fatalIf(t, cmd.Start())
			lines := bufio.NewReader(stderr)
			for line := ""; !strings.Contains(line, c.after); {
				line, err = lines.ReadString('\n')
				fatalIf(t, err)
			}
			threads := 1
			if c.after != "" {
				threads = 2 // the first has looked at the report before the job, and is still there
			}
			awaitBlocked(t, cmd.Process.Pid, threads)
			begin := time.Now()
			fatalIf(t, cmd.Process.Signal(syscall.SIGTERM))
			_, _ = io.Copy(io.Discard, lines)
			cmd.Wait()
			took := time.Since(begin)
			t.Logf("%v after %v", cmd.ProcessState, took)
			if took > 4*time.Second {
				t.Errorf("it ended %v after the signal, want at most 1 s", took)
			}
		})
	}
}

// What an agent waits for is named, and when the join timeout has passed, it ends.
func TestExecNamesHungFiles(t *testing.T) {
	if !proctest.MayMount(t) {
		return
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	fatalIf(t, unix.Mkfifo(fifo, 0o600))
	for _, c := range []struct{ name, env, args, want string }{
		{"program", "A=", "-- HUNG/program", "HUNG/program"},
		{"script", "A=", "-- /usr/bin/python3 HUNG/train.py", "HUNG/train.py"},
		{"PYTHONPATH", "PYTHONPATH=/usr:HUNG", "-- /usr/bin/python3 -c 1", "HUNG"},
		{"PATH", "PATH=HUNG:/usr/bin", "-- true", "HUNG"},
		{"directory", "A=", "--chdir HUNG/dir -- true", "HUNG/dir"},
		{"exports", "A=", "--export-file HUNG/file -- true", "HUNG/file"},
		{"FIFO", "A=", "--export-file " + fifo + " -- true", fifo},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := hungFileSystem(t)
			inDir := func(text string) string { return strings.ReplaceAll(text, "HUNG", dir) }
			args := append([]string{"exec", "--join-timeout", "5s"}, strings.Fields(inDir(c.args))...)
			r := runRdzv(t, append(os.Environ(), inDir(c.env)), args...)
			what := fmt.Sprintf("the file system of %q does not respond\n", inDir(c.want))
			if c.want == fifo {
				what = fmt.Sprintf("no program writes to the FIFO %q (--export @FILE)\n", fifo)
			}
			want := "rdzv: waiting: " + what + "rdzv: timed out after 5s (--join-timeout): " + what
			if r.code != 124 || r.stderr != want {
				t.Errorf("exit code %d, stderr %q, want 124 and %q", r.code, r.stderr, want)
			}
		})
	}
}
