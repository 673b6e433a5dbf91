package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hungFileSystem mounts a file system that does not respond: FUSE without a server.
func hungFileSystem(t *testing.T) (dir string, ok bool) {
	t.Helper()
	dir = t.TempDir()
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil || os.Getuid() != 0 {
		t.Logf("not tested: mounting a file system needs root and FUSE (%v)", err)
		return "", false
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device.Fd())
	fatalIf(t, unix.Mount("test", dir, "fuse", 0, options))
	t.Cleanup(func() {
		device.Close()
		fatalIf(t, unix.Unmount(dir, unix.MNT_DETACH))
	})
	return dir, true
}

// A file system that does not answer delays the end of the job by at most 5 s, although two agents
// have a report to write: the one that hosts the store, here that of rank 0, and then the one whose
// worker failed.
func TestReportOnHungFileSystem(t *testing.T) {
	t.Parallel()
	dir, ok := hungFileSystem(t)
	if !ok {
		return
	}
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
	if line, err := lines.ReadString('\n'); !strings.Contains(line,
		"no other agent has connected") {
		t.Fatalf("the first agent printed %q, %v", line, err)
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
	if !slices.Equal(codes, []int{7, 7}) || took > 9*time.Second {
		t.Errorf("the agents ended with %d after %v, want exit status 7 after 5 s", codes, took)
	}
	if strings.Count(stderr.String(), "does not respond") != 2 {
		t.Errorf("rdzv printed %q, want twice that the file system does not respond",
			stderr.String())
	}
}

// An exported PATH that leads to such a file system ends the job after the join timeout.
func TestExportedPathOnHungFileSystem(t *testing.T) {
	t.Parallel()
	dir, ok := hungFileSystem(t)
	if !ok {
		return
	}
	r := runRdzv(t, nil, "exec", "--join-timeout", "4s", "--export", "PATH="+dir, "--", "true")
	if r.code != 121 {
		t.Errorf("rdzv ended with %d, want 121", r.code)
	}
	for _, want := range []string{
		"the file system of the program, which is looked up with exported variables, does not " +
			"respond",
		"cannot look up the program with exported variables: the join timeout has passed",
	} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("rdzv printed %q, want %q", r.stderr, want)
		}
	}
}

// An agent that waits for a file system ends with the first signal, whatever it reads or writes
// there: within 1 s, for a report. HUNG stands for the file system.
func TestSignalsOnHungFileSystem(t *testing.T) {
	for _, c := range []struct{ name, env, args string }{
		{"token file", "A=", "--nodes 2 --store 127.0.0.1 --token-file HUNG/file -- true"},
		{"runtime directory", "TMPDIR=HUNG", "-- true"},
		{"home directory", "HOME=HUNG", "--nodes 2 -- true"},
		{"program", "A=", "-- HUNG/file"},
		{"exports", "A=", "--export-file HUNG/file -- true"},
		{"directory", "A=", "--chdir HUNG/dir -- true"},
		{"report", "A=", "--report HUNG/file -- true"},
		{"report of an error", "A=", "--report HUNG/file -- /none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, ok := hungFileSystem(t) // its own: others would wait for the kernel's locks
			if !ok {
				return
			}
			args := strings.Fields("exec " + strings.ReplaceAll(c.args, "HUNG", dir))
			cmd := exec.CommandContext(t.Context(), "rdzv", args...)
			cmd.Env = append(baseEnv(t.TempDir()), strings.ReplaceAll(c.env, "HUNG", dir))
			fatalIf(t, cmd.Start())
			awaitBlocked(t, cmd.Process.Pid)
			begin := time.Now()
			fatalIf(t, cmd.Process.Signal(syscall.SIGTERM))
			cmd.Wait()
			took := time.Since(begin)
			t.Logf("%v after %v", cmd.ProcessState, took)
			if took > 4*time.Second {
				t.Errorf("it ended %v after the signal, want at most 1 s", took)
			}
		})
	}
}

// A check reports file systems that do not respond after 2 s, and ends.
func TestCheckOnHungFileSystem(t *testing.T) {
	for _, args := range []string{
		"-- python3 HUNG/train.py", "--chdir HUNG -- true", "-- HUNG/program",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			dir, ok := hungFileSystem(t)
			if !ok {
				return
			}
			args := strings.Fields("check " + strings.ReplaceAll(args, "HUNG", dir))
			begin := time.Now()
			r := runRdzv(t, nil, args...)
			stdout := strings.Join(strings.Fields(r.stdout), " ")
			want := "error: cannot start: the file system of \"" + dir
			if r.code != 1 || !strings.Contains(stdout, want) {
				t.Errorf("exit code %d, stdout %q, want 1 and %q", r.code, r.stdout, want)
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("it ended after %v, want 2 s", took)
			}
		})
	}
}

// awaitBlocked waits until a thread of the process has been in an uninterruptible wait for 0.1 s.
func awaitBlocked(t *testing.T, pid int) {
	t.Helper()
	limit := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for times := 0; times < 10; {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("rdzv does not wait for the file system")
		}
		times++
		if !hasBlockedThread(pid) {
			times = 0
		}
	}
}

func hasBlockedThread(pid int) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), ") D ") {
			return true
		}
	}
	return false
}
