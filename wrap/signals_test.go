package wrap

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rdzv/internal/procfs"
)

// heard are the signals that listener asks for.
var heard = []syscall.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH,
}

// listener runs a worker that counts signals, says what its source yields, and passes on what the worker cannot have had.
var listener = role("listener", func() {
	src := Signals(heard...)
	signals := make(chan syscall.Signal)
	ended, all := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(all)
		seen := map[syscall.Signal]bool{}
		for over := ended; over != nil || src.owes(seen); {
			select {
			case e := <-src.C:
				seen[e.Signal] = true
				fmt.Printf("agent: %d shared=%v\n", int(e.Signal), e.Shared)
				if !e.Shared {
					select {
					case signals <- e.Signal:
					case <-ended:
					}
				}
			case <-over:
				over = nil
			}
		}
	}()
	w := child(counts)
	if script := os.Getenv(argEnv); script != "" {
		w.Path, w.Args = "/bin/sh", []string{"sh", "-c", script}
	}
	w.Stdin = os.Stdin
	results, err := Run(ctxNever, Tree{Workers: []Worker{w}, Source: src, Signals: signals, JobControl: true})
	close(ended)
	<-all
	fmt.Printf("ended %d outside %d %v\n", results[0].ExitCode(), int(results[0].Outside), err)
})

// owes reports whether a signal that the sentinel has reported was not seen yet: the worker may die
// of it, and Run return, before this process itself has received it.
func (s *Source) owes(seen map[syscall.Signal]bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ignored := ignoredSignals()
	return slices.ContainsFunc(heard, func(sig syscall.Signal) bool {
		return !s.reached[sig].IsZero() && !seen[sig] && !ignored.Has(sig)
	})
}

func startListener(t *testing.T, change func(*exec.Cmd)) (*exec.Cmd, lineReader) {
	t.Helper()
	return startAgent(t, 1, func(cmd *exec.Cmd) {
		cmd.Env[0] = roleEnv + "=" + listener
		cmd.Env[2] = argEnv + "="
		if change != nil {
			change(cmd)
		}
	})
}

func TestEachSignalOnce(t *testing.T) {
	nothingLeft(t)
	cmd, l := startListener(t, nil)
	agent := cmd.Process.Pid
	for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGCONT, syscall.SIGWINCH} {
		name := strings.ReplaceAll(s.String(), " ", "-")
		syscall.Kill(agent, s)
		l.inAnyOrder(fmt.Sprintf("agent: %d shared=false", int(s)), name)
		syscall.Kill(-agent, s)
		l.inAnyOrder(fmt.Sprintf("agent: %d shared=true", int(s)), name)
	}
	syscall.Kill(-agent, syscall.SIGUSR2)
	l.inAnyOrder("agent: 12 shared=true", "user-defined-signal-2", "ended 7 outside 3 <nil>")
}

// inAnyOrder takes as many lines as there are texts.
func (l lineReader) inAnyOrder(texts ...string) {
	l.t.Helper()
	left := map[string]bool{}
	for _, text := range texts {
		left[text] = true
	}
	for range texts {
		got := l.next()
		if !left[got] {
			l.t.Fatalf("line %q, want one of %v", got, left)
		}
		delete(left, got)
	}
}

// TestSignalsOneByOne sends as Slurm and systemd do: to each process, the agent first, the others a little later.
func TestSignalsOneByOne(t *testing.T) {
	nothingLeft(t)
	cmd, l := startListener(t, nil)
	dog, sentinel := watchdogOf(t, cmd.Process.Pid)
	for _, pid := range append([]int{cmd.Process.Pid, dog, sentinel}, workersOf(t, dog, sentinel)...) {
		syscall.Kill(pid, syscall.SIGUSR1)
	}
	l.inAnyOrder("agent: 10 shared=true", "user-defined-signal-1")
}

// workersOf lists the children of the watchdog but the sentinel.
func workersOf(t *testing.T, dog, sentinel int) []int {
	t.Helper()
	var pids []int
	for _, p := range marked(marker(t)) {
		if s, err := procfs.Read(procfs.System, p.PID); err == nil && s.Parent == dog && p.PID != sentinel {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// TestTimeout is coreutils' timeout: it signals the agent, and then the group. SIGALRM is what its timer sends it.
func TestTimeout(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	cmd := exec.Command("timeout", "1000", "/proc/self/exe")
	cmd.Args[2] = os.Args[0]
	cmd.Env = []string{roleEnv + "=" + listener, markerEnv + "=" + marker(t), "PATH=" + os.Getenv("PATH")}
	cmd.Stdout = out
	startMarked(t, cmd)
	l.want("ready")
	syscall.Kill(cmd.Process.Pid, syscall.SIGALRM)
	var worker, agent int
	for worker < 1 || agent < 1 {
		if line := l.next(); line == "terminated" {
			worker++
		} else if strings.HasPrefix(line, "agent: 15 shared=true") {
			agent++
		}
	}
	syscall.Kill(cmd.Process.Pid, syscall.SIGKILL)
	if worker != 1 {
		t.Errorf("the worker had SIGTERM %d times", worker)
	}
}

// TestOutside: a worker that died of what reached the whole group is known as such.
func TestOutside(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1} {
		t.Run(s.String(), func(t *testing.T) {
			nothingLeft(t)
			cmd, l := startListener(t, func(cmd *exec.Cmd) { cmd.Env[2] = argEnv + "=echo ready; exec sleep 1000" })
			syscall.Kill(-cmd.Process.Pid, s)
			l.inAnyOrder(fmt.Sprintf("agent: %d shared=true", int(s)),
				fmt.Sprintf("ended %d outside %d <nil>", 128+int(s), int(s)))
		})
	}
	t.Run("not", func(t *testing.T) {
		nothingLeft(t)
		_, l := startListener(t, func(cmd *exec.Cmd) { cmd.Env[2] = argEnv + "=echo ready; kill -TERM $$" })
		l.want("ended 143 outside 0 <nil>")
	})
}

// TestIgnoredFromTheStart: under nohup, and in the background of a script, signals stay ignored, and nowhere else.
func TestIgnoredFromTheStart(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	cmd := exec.Command("sh", "-c", `trap "" HUP INT TSTP; exec `+os.Args[0])
	cmd.Env = []string{roleEnv + "=" + listener, markerEnv + "=" + marker(t), argEnv + "=grep -E '^(SigIgn|SigBlk)' /proc/self/status; sleep 1000"}
	cmd.Stdout = out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		eventually(t, "gone", func() bool { return len(marked(marker(t))) == 0 })
	})
	ignored := uint64(1<<(syscall.SIGHUP-1) | 1<<(syscall.SIGINT-1) | 1<<(syscall.SIGTSTP-1))
	l.want("SigBlk:\t0000000000000000", fmt.Sprintf("SigIgn:\t%016x", ignored|ignoredForThreads(t)))
	syscall.Kill(-cmd.Process.Pid, syscall.SIGHUP)
	syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	l.inAnyOrder("agent: 15 shared=true", "ended 143 outside 15 <nil>")
}

// ignoredForThreads are signals from 32 on that this process ignores: those of thread libraries are left alone by Go.
func ignoredForThreads(t *testing.T) uint64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, set, _ := strings.Cut(string(status), "SigIgn:\t")
	bits, err := strconv.ParseUint(set[:16], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return bits &^ (1<<31 - 1)
}

// TestCleanWorker compares what a worker finds with what a plain child finds.
func TestCleanWorker(t *testing.T) {
	nothingLeft(t)
	script := `grep -E '^(Sig(Ign|Blk|Cgt)|Umask|NoNewPrivs|CapEff|Cpus_allowed):' /proc/self/status; cat /proc/self/timerslack_ns; ulimit -a; pwd; ls -l /proc/self/fd | sed -E 's/.* ([0-9]+) -> ([a-z/]*).*/\1 \2/' | grep -v proc; echo $(ps -o sid= -p $$) `
	plain := exec.Command("/bin/sh", "-c", script)
	plain.Env = sh(t, "").Env
	plainOut, want := output(t)
	plain.Stdout = plainOut
	if err := plain.Run(); err != nil {
		t.Fatal(err)
	}
	out, text := output(t)
	w := sh(t, script)
	w.Stdout = out
	mustRun(t, t.Context(), Tree{Workers: []Worker{w}, JobControl: true})
	if got, want := text(), want(); got != want {
		t.Errorf("the worker finds\n%s\na plain child\n%s", got, want)
	}
}

// TestSourceAlone: without a Run every signal is for this process alone, at once.
func TestSourceAlone(t *testing.T) {
	src := Signals(syscall.SIGUSR1)
	defer src.Close()
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	if e := <-src.C; e.Signal != syscall.SIGUSR1 || e.Shared || e.At.IsZero() {
		t.Errorf("%+v", e)
	}
}

// TestInheritedDescriptor: what a launcher gives the agent, as Hydra its PMI_FD, reaches the worker under its number.
func TestInheritedDescriptor(t *testing.T) {
	nothingLeft(t)
	extra, fd5 := lines(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	startListener(t, func(cmd *exec.Cmd) {
		cmd.Env[2] = argEnv + "=echo here >&5; echo ready; sleep 1000"
		cmd.ExtraFiles = []*os.File{null, null, extra}
	})
	fd5.want("here")
}

// TestSentinelDoesNotAnswer: of many workers that end by themselves, at most the first waits for it at length.
func TestSentinelDoesNotAnswer(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		t.Run(s.String(), func(t *testing.T) { endWithSentinel(t, s) })
	}
}

// endWithSentinel ends many workers at the same time after s has been sent to their sentinel.
func endWithSentinel(t *testing.T, s syscall.Signal) {
	nothingLeft(t)
	in, say, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	tree := Tree{Source: Signals(syscall.SIGUSR1)}
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
	syscall.Kill(sentinel, s)
	say.Close()
	if results, err := r.wait(); err != nil || results[n-1].Code != 3 {
		t.Errorf("%+v, %v", results, err)
	}
}
