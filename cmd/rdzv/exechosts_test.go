package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
	"rdzv/internal/proctest"
	"rdzv/rdzv"
)

// fakeSSH is ssh as far as rdzv needs it: the command runs in a session of its own, on a machine
// with another name, and what it reads and writes is copied, until the file FAKE_CUT.HOST exists.
func fakeSSH() {
	if os.Args[1] == "wait" {
		hang() // a host that does not answer
	}
	words := os.Args[len(os.Args)-2:]
	host, line := words[0], words[1]
	cut := os.Getenv("FAKE_CUT") + "." + host
	remote := exec.Command("sh", "-c", `hostname "$0" && exec sh -c "$1"`, host, line)
	remote.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWUTS}
	remote.Stderr = os.Stderr
	stdin, _ := remote.StdinPipe()
	stdout, _ := remote.StdoutPipe()
	if err := remote.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(255)
	}
	go func() { copyUntil(cut, stdin, os.Stdin); stdin.Close() }()
	copyUntil(cut, os.Stdout, stdout)
	_ = remote.Wait()
	os.Exit(remote.ProcessState.ExitCode())
}

// hang does nothing for ever. Go would take goroutines that can never go on for a deadlock.
func hang() {
	for {
		time.Sleep(time.Hour)
	}
}

// copyUntil copies until the end, or for ever nothing more when the file exists.
func copyUntil(cut string, to io.Writer, from io.Reader) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if _, missing := os.Stat(cut); missing == nil {
			hang()
		}
		if _, errWrite := to.Write(buffer[:n]); errWrite != nil || err != nil {
			return
		}
	}
}

// hostsJob is a job on the hosts a and b, with two ranks on each.
type hostsJob struct {
	*exec.Cmd
	dir    string // each rank makes a file in it
	mark   string // that the command lines of its processes contain
	began  time.Time
	ended  chan struct{}
	mu     sync.Mutex
	stderr bytes.Buffer
	stdout bytes.Buffer
}

var lastMark atomic.Int64 // jobs are started at the same time

// startOnHosts starts a job; words are flags and the program.
func startOnHosts(t *testing.T, words ...string) *hostsJob {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root makes machines with other names")
	}
	proctest.CatchIgnored()
	j := &hostsJob{
		dir: t.TempDir(), mark: fmt.Sprint("1000.", os.Getpid(), "0", lastMark.Add(1)), began: time.Now(),
		ended: make(chan struct{}),
	}
	for i := range words {
		words[i] = strings.ReplaceAll(strings.ReplaceAll(words[i], "DIR", j.dir), "MARK", j.mark)
	}
	args := append([]string{"exec", "--hosts", "a:2,b:2", "--ssh", "fakessh"}, words...)
	j.Cmd = exec.Command("rdzv", args...)
	j.Env = append(baseEnv(sharedHome(t)), "FAKE_CUT="+j.dir+"/cut")
	j.Dir = j.dir
	j.Stdout, j.Stderr = &lockedWriter{&j.mu, &j.stdout}, &lockedWriter{&j.mu, &j.stderr}
	if err := j.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = j.Wait(); close(j.ended) }()
	t.Cleanup(func() {
		_ = j.Process.Kill()
		<-j.ended
		j.nothingLeft(t)
		if t.Failed() {
			t.Logf("stderr:\n%s", j.errors())
		}
	})
	return j
}

// holding is a program that makes a file for each rank, and then does not end.
var holding = []string{"--", "sh", "-c", "echo > DIR/$RANK; exec sleep MARK"}

// sharedHome is a home directory for the tests that run at the same time: what one of them has
// copied there is found by the others.
func sharedHome(t *testing.T) string {
	t.Helper()
	homes.mu.Lock()
	defer homes.mu.Unlock()
	if homes.users++; homes.users == 1 {
		var err error
		homes.dir, err = os.MkdirTemp("", "rdzv-home-")
		fatalIf(t, err)
	}
	t.Cleanup(func() {
		homes.mu.Lock()
		defer homes.mu.Unlock()
		if homes.users--; homes.users == 0 {
			os.RemoveAll(homes.dir)
		}
	})
	return homes.dir
}

var homes struct {
	mu    sync.Mutex
	users int
	dir   string
}

type lockedWriter struct {
	mu *sync.Mutex
	to io.Writer
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(b)
}

func (j *hostsJob) errors() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stderr.String()
}

// waitFor waits until a condition is true.
func (j *hostsJob) waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// runs waits until all ranks run.
func (j *hostsJob) runs(t *testing.T) {
	t.Helper()
	j.waitFor(t, "all ranks run", func() bool {
		for rank := range 4 {
			if _, err := os.Stat(filepath.Join(j.dir, strconv.Itoa(rank))); err != nil {
				return false
			}
		}
		return len(j.workers()) == 4
	})
}

// workers are the processes of the holding program.
func (j *hostsJob) workers() (pids []int) {
	for _, pid := range allPIDs() {
		if slices.Equal(procfs.Arguments(procfs.System, pid), []string{"sleep", j.mark}) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func allPIDs() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ends waits for the end, and checks the exit code.
func (j *hostsJob) ends(t *testing.T, code int) {
	t.Helper()
	select {
	case <-j.ended:
	case <-time.After(60 * time.Second):
		t.Fatal("the starter does not end")
	}
	if got := j.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
}

// nothingLeft waits until no process of the job is left: each has its directory.
func (j *hostsJob) nothingLeft(t *testing.T) {
	t.Helper()
	left := func() (pids []int) {
		for _, pid := range allPIDs() {
			dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
			if p, errRead := procfs.Read(procfs.System, pid); err == nil && errRead == nil &&
				dir == j.dir && p.State != 'Z' {
				pids = append(pids, pid)
			}
		}
		return pids
	}
	j.waitFor(t, "no process is left", func() bool { return len(left()) == 0 })
}

// says checks that stderr has a text, once.
func (j *hostsJob) says(t *testing.T, text string) {
	t.Helper()
	if n := strings.Count(j.errors(), text); n != 1 {
		t.Errorf("%q is said %d times", text, n)
	}
}

// ssh are the fake ssh processes, in the order of the hosts.
func (j *hostsJob) ssh(t *testing.T) (pids []int) {
	t.Helper()
	children, err := procfs.Children(procfs.System, j.Process.Pid)
	fatalIf(t, err)
	byHost := map[string]int{}
	for _, pid := range children {
		if args := procfs.Arguments(procfs.System, pid); len(args) > 2 {
			byHost[args[len(args)-2]] = pid
		}
	}
	return []int{byHost["a"], byHost["b"]}
}

func TestHostsSucceed(t *testing.T) {
	j := startOnHosts(t, "--tag", "--", "sh", "-c", "echo $RANK of $WORLD_SIZE on $(hostname)")
	j.ends(t, 0)
	lines := strings.Split(strings.TrimSpace(j.stdout.String()), "\n")
	slices.Sort(lines)
	want := []string{"[0 a] 0 of 4 on a", "[1 a] 1 of 4 on a", "[2 b] 2 of 4 on b", "[3 b] 3 of 4 on b"}
	if !slices.Equal(lines, want) {
		t.Errorf("the output is %q, want %q", lines, want)
	}
	j.says(t, "4 ranks on 2 nodes: a 0-1, b 2-3")
}

// A failure has one report, whichever node it is on.
func TestHostsFailure(t *testing.T) {
	for _, rank := range []string{"0", "3"} {
		j := startOnHosts(t, "--", "sh", "-c",
			"if [ $RANK = "+rank+" ]; then echo no luck >&2; exit 7; fi; exec sleep MARK")
		j.ends(t, 7)
		j.says(t, "rank "+rank+" of 4 failed first")
		j.says(t, "how      exit 7 after")
	}
}

// Signals to the starter end the job on all nodes. The line about it names the starter.
func TestHostsSignals(t *testing.T) {
	machine, err := os.Hostname()
	fatalIf(t, err)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		j := startOnHosts(t, slices.Clone(holding)...)
		j.runs(t)
		fatalIf(t, j.Process.Signal(s))
		j.ends(t, 128+int(s))
		j.says(t, fmt.Sprintf("rdzv exec --hosts on %s received %v: the job is stopped", machine,
			rdzv.Signal(s)))
		j.says(t, "received SIG")
		j.nothingLeft(t)
	}
}

// The second signal does not wait for workers that ignore the first one.
func TestHostsSecondSignal(t *testing.T) {
	j := startOnHosts(t, "--grace", "10m", "--", "sh", "-c",
		"trap '' INT TERM; echo > DIR/$RANK; exec sleep MARK")
	j.runs(t)
	fatalIf(t, j.Process.Signal(syscall.SIGTERM))
	j.waitFor(t, "the first signal is known", func() bool {
		return strings.Contains(j.errors(), "the job is stopped")
	})
	time.Sleep(150 * time.Millisecond) // a second signal within 100 ms counts as the same
	fatalIf(t, j.Process.Signal(syscall.SIGTERM))
	j.ends(t, 143)
}

// A signal while ssh logs in ends the start.
func TestHostsSignalDuringLogin(t *testing.T) {
	j := startOnHosts(t, "--ssh", "fakessh wait", "--", "true")
	j.waitFor(t, "ssh is started", func() bool {
		children, _ := procfs.Children(procfs.System, j.Process.Pid)
		return len(children) == 2
	})
	fatalIf(t, j.Process.Signal(syscall.SIGINT))
	j.ends(t, 130)
}

// When the starter dies, or its connections end, nothing is left anywhere.
func TestHostsLoseTheStarter(t *testing.T) {
	j := startOnHosts(t, slices.Clone(holding)...)
	j.runs(t)
	fatalIf(t, j.Process.Kill())
	j.nothingLeft(t)
}

// One ssh that dies ends the job, also with --max-restarts, and the others know why.
func TestHostsLoseOneConnection(t *testing.T) {
	for i, flags := range [][]string{nil, {"--max-restarts", "3"}} {
		j := startOnHosts(t, append(flags, holding...)...)
		j.runs(t)
		fatalIf(t, unix.Kill(j.ssh(t)[1-i], syscall.SIGKILL))
		j.ends(t, 123)
		lost := []string{"b", "a"}[i]
		j.says(t, lost+" has lost its connection to rdzv exec --hosts")
		j.says(t, "hint: is "+lost+" on, and has its kernel killed rdzv? ssh "+lost+" ")
		j.nothingLeft(t)
	}
}

// A starter that is stopped, or from which nothing comes, is gone after some time; so is a node.
func TestHostsSilence(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s")
	}
	for name, silence := range map[string]func(t *testing.T, j *hostsJob){
		"the starter is stopped": func(t *testing.T, j *hostsJob) {
			fatalIf(t, j.Process.Signal(syscall.SIGSTOP))
			j.waitFor(t, "the workers end", func() bool { return len(j.workers()) == 0 })
			fatalIf(t, j.Process.Signal(syscall.SIGCONT))
		},
		"nothing arrives any more": func(t *testing.T, j *hostsJob) {
			for _, host := range []string{"a", "b"} {
				fatalIf(t, os.WriteFile(j.dir+"/cut."+host, nil, 0o600))
			}
		},
		"one ssh is stopped": func(t *testing.T, j *hostsJob) {
			fatalIf(t, unix.Kill(j.ssh(t)[1], syscall.SIGSTOP))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := startOnHosts(t, slices.Clone(holding)...)
			j.runs(t)
			silence(t, j)
			j.ends(t, 123)
			j.nothingLeft(t)
			if name == "nothing arrives any more" {
				j.says(t, "hint: is this machine connected to the nodes?")
			}
		})
	}
}

// Ctrl-Z stops the workers on all nodes, and the job goes on afterwards.
func TestHostsSuspend(t *testing.T) {
	j := startOnHosts(t, slices.Clone(holding)...)
	j.runs(t)
	allAre := func(states string) func() bool {
		return func() bool {
			workers := j.workers()
			for _, pid := range workers {
				p, err := procfs.Read(procfs.System, pid)
				if err != nil || !strings.ContainsRune(states, rune(p.State)) {
					return false
				}
			}
			return len(workers) == 4
		}
	}
	fatalIf(t, j.Process.Signal(syscall.SIGTSTP))
	j.waitFor(t, "the workers are stopped", allAre("T"))
	j.waitFor(t, "the starter is stopped", func() bool {
		p, err := procfs.Read(procfs.System, j.Process.Pid)
		return err == nil && p.State == 'T'
	})
	fatalIf(t, j.Process.Signal(syscall.SIGCONT))
	j.waitFor(t, "the workers run again", allAre("SR"))
	fatalIf(t, j.Process.Signal(syscall.SIGTERM))
	j.ends(t, 143)
}

// Rank 0 reads what the starter gets, more than fits anywhere on the way.
func TestHostsInput(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if os.Geteuid() != 0 {
		t.Skip("only root makes machines with other names")
	}
	cmd := exec.CommandContext(ctx, "rdzv", "exec", "--hosts", "a,b", "--ssh", "fakessh", "--",
		"sh", "-c", "[ $RANK = 1 ] || wc -c")
	cmd.Env, cmd.Stdin = baseEnv(sharedHome(t)), bytes.NewReader(make([]byte, 5<<20))
	out, err := cmd.Output()
	if err != nil || strings.TrimSpace(string(out)) != fmt.Sprint(5<<20) {
		t.Errorf("rank 0 has read %q bytes, %v", out, err)
	}
}

// check prints one table of all hosts, and its exit codes are those of check.
func TestHostsCheck(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes machines with other names")
	}
	for _, c := range []struct {
		words []string
		code  int
		shows string
	}{
		{[]string{"--hosts", "a,b", "-o", "json"}, 0, `"a",`},
		{[]string{"--hosts", "a,b", "--", "true"}, 0, "/true"},
		{[]string{"--hosts", "a,b", "--", "no-such-program"}, 1, "no-such-program"},
		{[]string{"--hosts", "a,a"}, 2, "already"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		words := append([]string{"check", "--ssh", "fakessh"}, c.words...)
		cmd := exec.CommandContext(ctx, "rdzv", words...)
		cmd.Env = baseEnv(sharedHome(t))
		out, err := cmd.CombinedOutput()
		cancel()
		if cmd.ProcessState.ExitCode() != c.code || !strings.Contains(string(out), c.shows) {
			t.Errorf("%q: %v, want exit code %d and %q:\n%s", words, err, c.code, c.shows, out)
		}
	}
}
