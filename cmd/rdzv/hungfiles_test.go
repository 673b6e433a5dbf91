package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
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

// An agent that waits for a file system ends with the first signal, and 128 + its number, whatever it
// reads or writes there: within 1 s, for a report. HUNG stands for the file system. The signal is sent when the
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
		{"log directory", "A=", "--log-dir HUNG/dir -- true", ""},
		{"exported PATH", "A=", "--export PATH=HUNG -- true", ""},
		{"check", "A=", "--chdir HUNG/dir -- true", ""},
		{"look at a report", "A=", "--report HUNG/file -- true", ""},
		{"report", "A=", "--report HUNG/file -- ls /none", "/none"},
		{"report of an error", "A=", "--report HUNG/file -- /none", "/none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := hungFileSystem(t) // its own: others would wait for the kernel's locks
			command := "exec "
			if c.name == "check" {
				command = "check "
			}
			args := strings.Fields(command + strings.ReplaceAll(c.args, "HUNG", dir))
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
			status := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if code := status.ExitStatus(); status.Signal() != syscall.SIGTERM && code != 143 && c.after == "" {
				t.Errorf("it ended with %v, want 143 or the end by signal 15", cmd.ProcessState)
			}
			if took > 4*time.Second {
				t.Errorf("it ended %v after the signal, want at most 1 s", took)
			}
		})
	}
}

// After 3 s a line says what the agent waits for, and when the join timeout has passed, it ends.
func TestExecNamesHungFiles(t *testing.T) {
	if !proctest.MayMount(t) {
		return
	}
	const program = "the file system of the program %q, or of what it needs, does not respond"
	for _, c := range []struct{ name, env, args, want string }{
		{"program", "A=", "-- HUNG/program", fmt.Sprintf(program, "HUNG/program")},
		{
			"script", "A=", "-- /usr/bin/python3 -u HUNG/train.py",
			fmt.Sprintf(program, "/usr/bin/python3 HUNG/train.py"),
		},
		{
			"PYTHONPATH", "PYTHONPATH=/usr:HUNG", "-- /usr/bin/python3 -c 1",
			fmt.Sprintf(program, "/usr/bin/python3"),
		},
		{"PATH", "PATH=HUNG:/usr/bin", "-- true", fmt.Sprintf(program, "true")},
		{
			"directory", "A=", "--chdir HUNG/dir -- true",
			`the file system of directory "HUNG/dir" does not respond`,
		},
		{
			"log directory", "A=", "--log-dir HUNG/logs -- true",
			`the file system of the log directory "HUNG/logs" does not respond`,
		},
		{"exports", "A=", "--export-file HUNG/file -- true", `the exports file "HUNG/file" does not respond`},
		{"home", "HOME=HUNG", "-- true", "the file system of the home directory does not respond"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := hungFileSystem(t)
			inDir := func(text string) string { return strings.ReplaceAll(text, "HUNG", dir) }
			args := append([]string{"exec", "--join-timeout", "5s"}, strings.Fields(inDir(c.args))...)
			r := runRdzv(t, append(os.Environ(), inDir(c.env)), args...)
			what := inDir(c.want) + "\n"
			want := "rdzv: waiting: " + what + "rdzv: timed out after 5s (--join-timeout): " + what
			if r.code != 124 || r.stderr != want {
				t.Errorf("exit code %d, stderr %q, want 124 and %q", r.code, r.stderr, want)
			}
		})
	}
}

// An agent goes on when a file responds, here a FIFO that is written after a line says that the
// agent waits for it.
func TestExecGoesOnAfterHungFile(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	fatalIf(t, unix.Mkfifo(fifo, 0o600))
	cmd := exec.CommandContext(t.Context(), "rdzv", "exec", "--export-file", fifo, "--",
		"sh", "-c", "echo $GREETING")
	cmd.Env = baseEnv(t.TempDir())
	var stdout strings.Builder
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	fatalIf(t, err)
	fatalIf(t, cmd.Start())
	lines := bufio.NewReader(stderr)
	want := fmt.Sprintf("rdzv: waiting: the exports file %q does not respond\n", fifo)
	if line, err := lines.ReadString('\n'); line != want {
		t.Fatalf("it printed %q, %v, want %q", line, err, want)
	}
	fatalIf(t, os.WriteFile(fifo, []byte("GREETING=hello\n"), 0))
	rest, _ := io.ReadAll(lines)
	if err := cmd.Wait(); err != nil || stdout.String() != "hello\n" {
		t.Errorf("%v, stdout %q, stderr %q, want hello", err, stdout.String(), rest)
	}
}

// An agent that waits for a file system ends when its launcher has died.
func TestLauncherDiesWhileFilesHang(t *testing.T) {
	t.Parallel()
	if !proctest.MayMount(t) {
		return
	}
	dir, name := hungFileSystem(t), filepath.Join(t.TempDir(), "slurmstepd")
	shell, err := os.ReadFile("/bin/sh")
	fatalIf(t, err)
	fatalIf(t, os.WriteFile(name, shell, 0o700))
	launcher := exec.CommandContext(t.Context(), name, "-c", "rdzv exec -- "+dir+"/program; exit 1")
	launcher.Env = baseEnv(t.TempDir())
	read, write, err := os.Pipe()
	fatalIf(t, err)
	defer read.Close()
	launcher.Stderr = write
	fatalIf(t, launcher.Start())
	write.Close()
	lines := bufio.NewReader(read)
	if line, err := lines.ReadString('\n'); !strings.Contains(line, "rdzv: waiting: ") {
		t.Errorf("the agent printed %q, %v, want what it waits for", line, err)
	}
	fatalIf(t, launcher.Process.Kill())
	_ = launcher.Wait()
	rest, err := io.ReadAll(lines) // until the agent has ended
	want := fmt.Sprintf("rdzv: lost the launcher: slurmstepd (pid %d on ", launcher.Process.Pid)
	if err != nil || !strings.Contains(string(rest), want) {
		t.Errorf("then it printed %q, %v, want %q", rest, err, want)
	}
}

// One node's agent waits for a file system. A line on that node says so; to the other one it is an
// agent that has not joined, whether it was to host the store or not.
func TestOneNodeWithHungFiles(t *testing.T) {
	if !proctest.MayMount(t) {
		return
	}
	host, err := os.Hostname()
	fatalIf(t, err)
	for hung := range 2 {
		t.Run(fmt.Sprint("node ", hung), func(t *testing.T) {
			t.Parallel()
			dir := hungFileSystem(t)
			env := baseEnv(t.TempDir())
			l, err := net.Listen("tcp", "127.0.0.1:0")
			fatalIf(t, err)
			store := l.Addr().String()
			fatalIf(t, l.Close())
			var stderr [2]strings.Builder
			var agents [2]*exec.Cmd
			for i := range agents {
				line := fmt.Sprintf("exec --nodes 2 --job hung --store %s --join-timeout 6s "+
					"--node-rank %d -- ", store, i)
				program := "/bin/true"
				if i == hung {
					program = filepath.Join(dir, "program")
				}
				agents[i] = exec.CommandContext(t.Context(), "rdzv", strings.Fields(line+program)...)
				agents[i].Env, agents[i].Stderr = env, &stderr[i]
				fatalIf(t, agents[i].Start())
			}
			for i, agent := range agents {
				agent.Wait()
				want := fmt.Sprintf("(--join-timeout): 1 of 2 agents joined (from %s); "+
					"node rank %d is missing\n", host, hung)
				if i == hung {
					want = "rdzv: waiting: the file system of the program"
				}
				if text := stderr[i].String(); agent.ProcessState.ExitCode() != 124 ||
					!strings.Contains(text, want) {
					t.Errorf("agent %d ended with %v, and printed %q, want 124 and %q", i,
						agent.ProcessState, text, want)
				}
			}
		})
	}
}

// A check waits for a file system as exec does.
func TestCheckOnHungFileSystem(t *testing.T) {
	t.Parallel()
	if !proctest.MayMount(t) {
		return
	}
	dir := hungFileSystem(t)
	r := runRdzv(t, nil, "check", "--join-timeout", "5s", "--chdir", dir, "--", "true")
	what := fmt.Sprintf("the file system of directory %q does not respond\n", dir)
	want := "rdzv: waiting: " + what + "rdzv: timed out after 5s (--join-timeout): " + what
	if r.code != 1 || r.stderr != want {
		t.Errorf("exit code %d, stderr %q, want 1 and %q", r.code, r.stderr, want)
	}
}
