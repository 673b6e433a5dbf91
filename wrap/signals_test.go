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
	"time"

	"rdzv/internal/procfs"
	"rdzv/wrap/internal/frames"
)

// requested are the signals that listener requests.
var requested = []syscall.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH,
}

// listener is an agent that prints the signals of its source and forwards them. Its worker is
// printingSignals, or the shell script in argEnv.
var listener = role("listener", func() {
	src := Signals(requested...)
	signals := make(chan Event)
	ended, all := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(all)
		seen := map[syscall.Signal]bool{}
		for over := ended; over != nil || src.pending(seen); {
			select {
			case e := <-src.C:
				seen[e.Signal] = true
				fmt.Printf("agent: %d shared=%v\n", int(e.Signal), e.Shared)
				select {
				case signals <- e:
				case <-ended:
				}
			case <-over:
				over = nil
			}
		}
	}()
	w := child(printingSignals)
	if script := os.Getenv(argEnv); script != "" {
		w.Path, w.Args = "/bin/sh", []string{"sh", "-c", script}
	}
	w.Stdin = os.Stdin
	workers := []Worker{w}
	others, _ := strconv.Atoi(os.Getenv(othersEnv))
	for range others {
		w.Path, w.Args = "/bin/sleep", []string{"sleep", "100"}
		workers = append(workers, w)
	}
	mode := map[string]Signalled{"": Alone, "launched": Launched, "everyone": Everyone}
	results, err := Run(ctxNever, Tree{
		Workers: workers, Source: src, Signals: signals, JobControl: true,
		Signalled: mode[os.Getenv(modeEnv)],
	})
	close(ended)
	<-all
	e := results[0]
	fmt.Printf("ended %d group signal %d %v\n", e.ExitCode(), int(e.GroupSignal), err)
})

// othersEnv is how many more workers a listener has, which run sleep.
const othersEnv = "WRAP_TEST_OTHERS"

// modeEnv has the value of Tree.Signalled of a listener.
const modeEnv = "WRAP_TEST_SIGNALLED"

// pending reports whether a signal that the workers have received too has not been seen: Run may
// return, because the worker died of the signal, before this process has received it.
func (s *Source) pending(seen map[syscall.Signal]bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, _ := procfs.ReadSignals(procfs.System, os.Getpid())
	return slices.ContainsFunc(requested, func(sig syscall.Signal) bool {
		return !s.last[sig].IsZero() && !seen[sig] && !own.Ignored.Has(sig)
	})
}

// startListener is startAgent with a listener.
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

// TestEachSignalOnce: agent and worker receive each signal once, whether it is sent to the agent or
// to its group.
func TestEachSignalOnce(t *testing.T) {
	for _, mode := range []string{"", "launched"} {
		t.Run(mode, func(t *testing.T) {
			nothingLeft(t)
			cmd, l := startListener(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, modeEnv+"="+mode) })
			agent := cmd.Process.Pid
			for _, s := range []syscall.Signal{
				syscall.SIGUSR1, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
				syscall.SIGCONT, syscall.SIGWINCH,
			} {
				name := strings.ReplaceAll(s.String(), " ", "-")
				for _, pid := range []int{agent, -agent} {
					syscall.Kill(pid, s)
					l.inAnyOrder(fmt.Sprintf("agent: %d shared=false", int(s)), name)
				}
			}
			syscall.Kill(-agent, syscall.SIGUSR2)
			l.inAnyOrder("agent: 12 shared=false", "user-defined-signal-2", "ended 7 group signal 0 <nil>")
		})
	}
}

// TestGroupsOfWorkers: descendants in the process group of a worker get what a launcher sends, and
// not what somebody sends to the agent alone.
func TestGroupsOfWorkers(t *testing.T) {
	for mode, want := range map[string]string{"": "worker", "launched": "both"} {
		t.Run(mode, func(t *testing.T) {
			nothingLeft(t)
			cmd, l := startListener(t, func(cmd *exec.Cmd) {
				cmd.Env[2] = argEnv + `=trap "echo worker; sleep 2; exit 0" USR1
sh -c 'trap "echo descendant" USR1; echo ready; while :; do sleep 0.01; done' & while :; do wait; done`
				cmd.Env = append(cmd.Env, modeEnv+"="+mode)
			})
			syscall.Kill(cmd.Process.Pid, syscall.SIGUSR1)
			seen := map[string]bool{}
			for line := ""; !strings.HasPrefix(line, "ended"); seen[line] = true {
				line = l.next()
			}
			if !seen["worker"] || seen["descendant"] != (want == "both") {
				t.Errorf("lines %v, want SIGUSR1 at %s", seen, want)
			}
		})
	}
}

// inAnyOrder fails the test unless the next lines are texts, in any order.
func (l lineReader) inAnyOrder(texts ...string) {
	l.t.Helper()
	left := map[string]bool{}
	for _, text := range texts {
		left[text] = true
	}
	for range texts {
		got := l.next()
		if !left[got] {
			l.t.Fatalf("got line %q, want one of %v", got, left)
		}
		delete(left, got)
	}
}

// TestSeparateSignals sends a signal to each process, the agent first, as Slurm and systemd do: the
// workers receive it once.
func TestSeparateSignals(t *testing.T) {
	nothingLeft(t)
	cmd, l := startListener(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, modeEnv+"=everyone") })
	agent, runner := cmd.Process.Pid, runnerOf(t, cmd.Process.Pid)
	workers, _ := procfs.Children(procfs.System, runner)
	for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGTERM, syscall.SIGCONT} {
		name := strings.ReplaceAll(s.String(), " ", "-")
		for _, pid := range append([]int{agent, runner}, workers...) {
			syscall.Kill(pid, s)
		}
		l.inAnyOrder(fmt.Sprintf("agent: %d shared=true", int(s)), name)
	}
}

// TestIgnoredAtStart: signals that nohup or a script ignores for a background job stay ignored.
func TestIgnoredAtStart(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	cmd := exec.Command("sh", "-c", `trap "" HUP INT TSTP; exec `+os.Args[0])
	cmd.Env = []string{
		roleEnv + "=" + listener, markerEnv + "=" + marker(t),
		argEnv + "=grep -E '^(SigIgn|SigBlk)' /proc/self/status; sleep 1000",
	}
	cmd.Stdout = out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		eventually(t, "all have ended", func() bool { return len(marked(marker(t))) == 0 })
	})
	ignored := uint64(1<<(syscall.SIGHUP-1) | 1<<(syscall.SIGINT-1) | 1<<(syscall.SIGTSTP-1))
	own, _ := procfs.ReadSignals(procfs.System, os.Getpid())
	ignored |= uint64(own.Ignored) &^ (1<<31 - 1) // from 32 on: Go leaves some of them alone
	l.want("SigBlk:\t0000000000000000", fmt.Sprintf("SigIgn:\t%016x", ignored))
	syscall.Kill(-cmd.Process.Pid, syscall.SIGHUP)
	syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	l.inAnyOrder("agent: 15 shared=false", "ended 143 group signal 0 <nil>")
}

// TestWorkerEnvironment compares the process state of a worker with that of a child of os/exec.
func TestWorkerEnvironment(t *testing.T) {
	nothingLeft(t)
	script := `
		grep -E '^(Sig(Ign|Blk|Cgt)|Umask|NoNewPrivs|CapEff|Cpus_allowed):' /proc/self/status
		cat /proc/self/timerslack_ns; ulimit -a; pwd
		ls -l /proc/self/fd | sed -E 's/.* ([0-9]+) -> ([a-z/]*).*/\1 \2/' | grep -v proc
		echo $(ps -o sid= -p $$)`
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
		t.Errorf("worker:\n%s\nchild of os/exec:\n%s", got, want)
	}
}

// TestSourceWithoutRun: without a Run no signal is shared.
func TestSourceWithoutRun(t *testing.T) {
	src := Signals(syscall.SIGUSR1)
	defer src.Close()
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	if e := <-src.C; e.Signal != syscall.SIGUSR1 || e.Shared || e.At.IsZero() {
		t.Errorf("got %+v, want SIGUSR1, not Shared", e)
	}
}

// TestInheritedDescriptor: a descriptor that the agent inherits, such as PMI_FD from Hydra, has the
// same number in the worker.
func TestInheritedDescriptor(t *testing.T) {
	nothingLeft(t)
	extra, fd5 := lines(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	startListener(t, func(cmd *exec.Cmd) {
		cmd.Env[2] = argEnv + "=echo inherited >&5; echo ready; sleep 1000"
		cmd.ExtraFiles = []*os.File{null, null, extra}
	})
	fd5.want("inherited")
}

// betweenRuns is a process between two runs with job control.
var betweenRuns = role("between runs", func() {
	src := Signals()
	w := child(printingSignals)
	w.Path, w.Args = "/bin/true", []string{"true"}
	_, err := Run(ctxNever, Tree{Workers: []Worker{w}, Source: src, JobControl: true})
	fmt.Println("ready")
	fmt.Println("between runs", err)
	pause()
})

// TestJobControlBetweenRuns: a signal of job control stops a process that has no workers, as if it
// did not catch it.
func TestJobControlBetweenRuns(t *testing.T) {
	nothingLeft(t)
	cmd, l := startListener(t, func(cmd *exec.Cmd) { cmd.Env[0] = roleEnv + "=" + betweenRuns })
	l.want("between runs <nil>")
	is := func(state byte) func() bool {
		return func() bool {
			p, err := procfs.Read(procfs.System, cmd.Process.Pid)
			return err == nil && p.State == state
		}
	}
	syscall.Kill(cmd.Process.Pid, syscall.SIGTSTP)
	eventually(t, "stopped", is('T'))
	syscall.Kill(cmd.Process.Pid, syscall.SIGCONT)
	eventually(t, "continued", is('S'))
}

// Job control is that of the calls that want it.
func TestJobControlOfOneRun(t *testing.T) {
	with := &call{tree: &Tree{JobControl: true}, stops: make(chan os.Signal, 1)}
	without := &call{tree: &Tree{}, stops: make(chan os.Signal, 1)}
	s := &Source{calls: map[*call]bool{with: true, without: true}}
	s.takeStop(syscall.SIGTSTP)
	if len(with.stops) != 1 || len(without.stops) != 0 {
		t.Errorf("%d and %d signals, want one and none", len(with.stops), len(without.stops))
	}
}

// A signal of the terminal that comes while the runner is about to say whether the workers belong to
// the process group of the agent waits for that: they get it once.
func TestSignalBeforeTreeBegins(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		src := RemoteSignals()
		c := newCall(&Runner{lost: make(chan struct{})}, &Tree{JobControl: true})
		src.add(c)
		src.Receive(syscall.SIGTERM)
		if e := <-src.C; e.Shared {
			t.Errorf("%+v is shared", e)
		}
		src.Receive(syscall.SIGINT)
		select {
		case e := <-src.C:
			t.Errorf("got %+v before it is known who receives it", e)
		case <-time.After(50 * time.Millisecond):
		}
		begun := frames.Frame{Kind: treeBegun, Body: fmt.Appendf(nil, `{"Terminal": %t}`, terminal)}
		if err := c.take(&begun); err != nil {
			t.Fatal(err)
		}
		if e := <-src.C; e.Signal != syscall.SIGINT || e.Shared != terminal {
			t.Errorf("got %+v, want SIGINT and Shared %t", e, terminal)
		}
		src.remove(c)
		c.finish()
		src.Close()
	}
}

// Such a signal does not wait for a runner that has died.
func TestSignalAfterRunnerDied(t *testing.T) {
	src := RemoteSignals()
	defer src.Close()
	r := &Runner{lost: make(chan struct{})}
	close(r.lost)
	c := newCall(r, &Tree{JobControl: true})
	defer c.finish()
	src.add(c)
	src.Receive(syscall.SIGINT)
	if e := <-src.C; e.Signal != syscall.SIGINT || e.Shared {
		t.Errorf("got %+v, want SIGINT, not Shared", e)
	}
}
