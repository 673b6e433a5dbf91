package wrap

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/procfs"
)

// TestStartAt: a worker starts at its time, and so do those after it.
func TestStartAt(t *testing.T) {
	nothingLeft(t)
	at := time.Now().Add(200 * time.Millisecond)
	tree := Tree{Workers: []Worker{sh(t, ""), sh(t, ""), sh(t, "")}}
	tree.Workers[1].StartAt = at
	var started [3]time.Time
	tree.Started = func(i, _ int) { started[i] = time.Now() }
	for i, r := range mustRun(t, context.Background(), tree) {
		if r.PID == 0 || r.Code != 0 {
			t.Errorf("worker %d: %+v, want that it ran and exited with 0", i, r)
		}
	}
	if started[1].Before(at) || started[2].Before(started[1]) {
		t.Errorf("workers started at %v, want the second and the third after %v", started, at)
	}
}

// TestStartNow: workers that wait for their time start when they no longer need to, and those that
// come after the order do not wait.
func TestStartNow(t *testing.T) {
	for _, early := range []bool{false, true} {
		nothingLeft(t)
		now, started := make(chan struct{}), make(chan int, 3)
		if early {
			close(now)
		}
		tree := Tree{Workers: []Worker{sh(t, ""), sh(t, ""), sh(t, "")}, StartNow: now}
		tree.Workers[1].StartAt = time.Now().Add(time.Hour)
		tree.Workers[2].StartAt = time.Now().Add(time.Hour)
		tree.Started = func(i, _ int) { started <- i }
		r := begin(t, tree)
		if <-started; !early {
			close(now)
		}
		if results, err := r.wait(); err != nil || results[2].PID == 0 || results[2].Code != 0 {
			t.Errorf("Run = %+v, %v, want that all ran", results, err)
		}
	}
}

// TestEndBeforeStartAt: while a worker waits for its time, the end of another one is reported at
// once, with the end of its stderr, and the tree can be stopped at once.
func TestEndBeforeStartAt(t *testing.T) {
	for _, row := range []struct {
		name string
		stop func(*running)
		want Result
		err  error
	}{
		{"ctx", func(r *running) { r.cancel(nil) }, notStarted, nil},
		{"Kill", func(r *running) { r.kill() }, notStarted, nil},
		{
			"runner", func(*running) { syscall.Kill(runnerOf(t, os.Getpid()), syscall.SIGKILL) },
			Result{Signal: syscall.SIGKILL, Stopped: true, Err: ErrRunner}, ErrRunner,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			nothingLeft(t)
			null, _ := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			defer null.Close()
			first, second := sh(t, "echo reason >&2; exit 3"), sh(t, "")
			first.Stderr, first.Capture = null, true
			second.StartAt = time.Now().Add(time.Hour)
			ended := make(chan Result, 2)
			r := begin(t, Tree{
				Workers: []Worker{first, second}, Grace: longGrace, Linger: true,
				Ended: func(_ int, r Result) { ended <- r },
			})
			got := <-ended
			if got.Code != 3 || string(got.Stderr) != "reason\n" {
				t.Errorf("first worker: %+v, want code 3 and its stderr", got)
			}
			row.stop(r)
			results, err := r.wait()
			if !errors.Is(err, row.err) || len(results) != 2 {
				t.Fatalf("Run = %+v, %v, want two results and %v", results, err, row.err)
			}
			got = results[1]
			same := got.PID == 0 && got.Signal == row.want.Signal && got.Stopped == row.want.Stopped
			if !same || !errors.Is(got.Err, row.want.Err) {
				t.Errorf("second worker: %+v, want %+v", got, row.want)
			}
		})
	}
}

// waitingAgent has a worker that runs and one that waits for its time.
var waitingAgent = role("waiting agent", func() {
	tree := Tree{Workers: []Worker{child(printingSignals), child(printingSignals)}}
	tree.Workers[1].StartAt = time.Now().Add(time.Hour)
	tree.Source = Signals(syscall.SIGTERM)
	Run(ctxNever, tree)
})

// TestAgentKilledBeforeStartAt: if the agent is killed while a worker waits for its time, nothing
// is left.
func TestAgentKilledBeforeStartAt(t *testing.T) {
	nothingLeft(t)
	cmd, _ := startAgent(t, 1, func(cmd *exec.Cmd) { cmd.Env[0] = roleEnv + "=" + waitingAgent })
	runner := runnerOf(t, cmd.Process.Pid)
	cmd.Process.Kill()
	eventually(t, "the runner has ended", func() bool { return dead(runner) })
}

// TestSignalBeforeStartAt: a worker receives the signals that came before its start, also one that
// the workers before it have received as members of the process group.
func TestSignalBeforeStartAt(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run("shared="+strconv.FormatBool(shared), func(t *testing.T) {
			nothingLeft(t)
			out, l := lines(t)
			first, second := worker(t, printingSignals), sh(t, "exec sleep 1000")
			first.Stdout = out
			signals, started := make(chan Event), make(chan int, 2)
			startNow := make(chan struct{})
			second.StartAt = time.Now().Add(time.Hour)
			r := begin(t, Tree{
				Workers: []Worker{first, second}, Grace: longGrace, Signals: signals,
				StartNow: startNow, Started: func(i, _ int) { started <- i },
			})
			<-started
			l.want("ready")
			signals <- Event{Signal: syscall.SIGUSR1, Shared: shared, At: time.Now()}
			if !shared {
				l.want("user-defined-signal-1")
			}
			close(startNow)
			<-started
			signals <- Event{Signal: syscall.SIGUSR2}
			l.want("user-defined-signal-2")
			if results, err := r.wait(); err != nil || results[1].Signal != syscall.SIGUSR1 {
				t.Errorf("Run = %+v, %v, want that SIGUSR1 killed the second worker", results, err)
			}
		})
	}
}

// A worker is not started while a shell has stopped the others, but when they are continued.
func TestStartAtWhileStopped(t *testing.T) {
	nothingLeft(t)
	out, l := lines(t)
	first, second := sh(t, "kill -TSTP $$; echo first; exec sleep 1000"), sh(t, "echo second")
	first.Stdout, second.Stdout = out, out
	second.StartAt = time.Now().Add(time.Hour)
	started, startNow := make(chan int, 2), make(chan struct{})
	r := begin(t, Tree{
		Workers: []Worker{first, second}, StartNow: startNow,
		Started: func(_, pid int) { started <- pid },
	})
	pid := <-started
	eventually(t, "the first is stopped", func() bool { return procfs.IsStopped(procfs.System, pid) })
	time.Sleep(time.Second) // until the runner knows it
	close(startNow)
	select {
	case <-started:
		t.Error("the second is started while the first is stopped")
	case <-time.After(2 * time.Second):
	}
	_ = syscall.Kill(pid, syscall.SIGCONT)
	l.inAnyOrder("first", "second")
	r.kill()
	_, _ = r.wait()
}
