package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// The workers of these tests.
var (
	// failsWhenTold fails as local rank 0 when its standard input ends; other ranks run until they are
	// stopped.
	failsWhenTold = role("fails-when-told", func() int {
		if os.Getenv("LOCAL_RANK") != "0" {
			return untilStopped()
		}
		io.Copy(io.Discard, os.Stdin)
		fmt.Fprintln(os.Stderr, "Traceback (most recent call last):\nValueError: no such data set")
		return 3
	})
	// runsOn runs until a signal ends it.
	runsOn = role("runs-on", untilStopped)
	// savesAndExits exits with 0 after SIGTERM, as a program that writes a checkpoint.
	savesAndExits = role("saves-and-exits", func() int {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		os.Stdout.WriteString("ready\n")
		<-c
		return 0
	})
)

// untilStopped waits until a signal ends this process. (The runtime takes a wait without a timer for a
// deadlock.)
func untilStopped() int {
	<-time.After(time.Hour)
	return 1
}

// recorder keeps the events of a Run. onEvent, which may be nil, is called with each of them.
type recorder struct {
	t       *testing.T
	one     sync.Mutex
	events  []agent.Event
	onEvent func(agent.Event)
	ended   bool // Run has returned
}

func (r *recorder) event(e agent.Event) {
	if !r.one.TryLock() {
		r.t.Errorf("%s comes while another event is handled", e.Type())
		return
	}
	defer r.one.Unlock()
	if r.ended {
		r.t.Errorf("%s comes after Run has returned", e.Type())
	}
	r.events = append(r.events, e)
	if r.onEvent != nil {
		r.onEvent(e)
	}
}

// run runs an agent, and fails the test if something of it is left.
func (r *recorder) run(ctx context.Context, c agent.Config) (agent.Result, error) {
	r.t.Helper()
	c.Events = r.event
	check := noneLeft(r.t, c.Environ)
	result, err := agent.Run(ctx, c)
	check()
	r.one.Lock()
	r.ended = true
	r.one.Unlock()
	goleak.VerifyNone(r.t, goleak.IgnoreCurrent())
	return result, err
}

// types are the events' types, without those that depend on the machine.
func (r *recorder) types() (types []string) {
	for _, e := range r.events {
		switch e.(type) {
		case agent.EnvironmentNote, agent.Diagnostic:
		default:
			types = append(types, e.Type())
		}
	}
	return types
}

// started returns a function that calls do when n workers have been started.
func started(n int, do func()) func(agent.Event) {
	return func(e agent.Event) {
		if _, ok := e.(agent.WorkerStarted); ok {
			if n--; n == 0 {
				do()
			}
		}
	}
}

func TestAllWorkersSucceed(t *testing.T) {
	r := &recorder{t: t}
	result, err := r.run(t.Context(), config(t, succeed, 8))
	if v := result.Verdict; err != nil || v == nil || v.Kind != rdzv.Done || !result.Settled || !result.Hosting {
		t.Errorf("Run: %+v, %v", result, err)
	}
	if code := agent.ExitCode(result, err); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if result.World.Size != 8 || result.Job == "" || result.Failure != nil {
		t.Errorf("Run: %+v", result)
	}
	got := r.types()
	counts := map[string]int{}
	for _, name := range got {
		counts[name]++
	}
	if counts["worker_started"] != 8 || counts["worker_exited"] != 8 || len(got) != 5+16 ||
		!slices.Equal(got[len(got)-2:], []string{"job_ended", "finished"}) {
		t.Errorf("events %q", got)
	}
}

// Each step is reported in the order in which it happens: what ends the job comes before its end.
func TestWorkerFails(t *testing.T) {
	stdin, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	r := &recorder{t: t, onEvent: started(3, func() { told.Close() })}
	c := config(t, failsWhenTold, 3)
	c.Stdin, c.Stderr, c.Job = stdin, stderr, "test"
	result, err := r.run(t.Context(), c)
	if code := agent.ExitCode(result, err); code != 3 {
		t.Errorf("exit code %d; Run: %+v, %v", code, result, err)
	}
	want := []string{
		"placed", "store_found", "world_agreed", "worker_started", "worker_started", "worker_started",
		"worker_exited", "job_ended", "worker_exited", "worker_exited", "failure_reported", "finished",
	}
	if got := r.types(); !slices.Equal(got, want) {
		t.Errorf("events %q\nwant %q", got, want)
	}
	if f := result.Failure; f == nil || f.Rank != 0 || f.Code != 3 || f.WorldSize != 3 || f.Job != "test" ||
		f.Message != "ValueError: no such data set" || len(f.Stderr) != 2 {
		t.Errorf("failure %+v", f)
	}
	for _, e := range r.events {
		switch e := e.(type) {
		case agent.WorkerExited:
			first, terminated := e.Rank == 0, e.Signal == int(syscall.SIGTERM)
			if e.Stopped == first || terminated == first || e.PID == 0 || e.Took <= 0 {
				t.Errorf("worker_exited %+v", e)
			}
		case agent.JobEnded:
			if v := e.Verdict; !e.Own || !e.Hosting || v.Kind != rdzv.Failed || v.Rank != 0 || v.Code != 3 {
				t.Errorf("job_ended %+v, %+v", e, v)
			}
		}
	}
}

// The end of the caller's context stops the job as SIGTERM to this process does.
func TestContextEnds(t *testing.T) {
	for _, c := range []struct {
		role string
		code int
	}{{runsOn, 143}, {savesAndExits, 0}} {
		t.Run(c.role, func(t *testing.T) {
			ready, stdout, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer ready.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := &recorder{t: t}
			config := config(t, c.role, 1)
			config.Stdout, config.Grace = stdout, deadline
			var all sync.WaitGroup
			defer all.Wait()
			if c.role == savesAndExits {
				all.Go(func() { io.ReadFull(ready, make([]byte, 6)); cancel() })
			} else {
				r.onEvent = started(1, cancel)
			}
			result, err := r.run(ctx, config)
			stdout.Close()
			v := result.Verdict
			if err != nil || v == nil || v.Kind != rdzv.Ended {
				t.Fatalf("Run: %+v, %v", result, err)
			}
			if v.Signal != int(syscall.SIGTERM) || v.PID != os.Getpid() {
				t.Errorf("verdict %+v", v)
			}
			if code := agent.ExitCode(result, err); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
		})
	}
}

// A context that has ended before there is a job ends the search.
func TestContextEndedBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := config(t, succeed, 1)
	c.Nodes, c.Insecure, c.Store = 2, true, "127.0.0.1"
	result, err := (&recorder{t: t}).run(ctx, c)
	if signal := (&agent.SignalError{}); !errors.As(err, &signal) || agent.ExitCode(result, err) != 143 {
		t.Errorf("Run: %v, exit code %d", err, agent.ExitCode(result, err))
	}
}

// What keeps this agent from running its workers is a problem in the verdict, and no error.
func TestProgramMissing(t *testing.T) {
	r := &recorder{t: t}
	c := config(t, succeed, 2)
	c.Program = []string{"no-such-program"}
	result, err := r.run(t.Context(), c)
	v := result.Verdict
	if err != nil || v == nil || v.Kind != rdzv.Unready || len(v.Problems) != 1 {
		t.Fatalf("Run: %+v, %v", result, err)
	}
	if v.Problems[0].Kind != rdzv.ProgramMissing {
		t.Errorf("problem %+v", v.Problems[0])
	}
	if code := agent.ExitCode(result, err); code != agent.CodeMissing {
		t.Errorf("exit code %d", code)
	}
	want := []string{"placed", "store_found", "job_ended", "finished"}
	if got := r.types(); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// One Run may follow another.
func TestRunTwice(t *testing.T) {
	for i := range 2 {
		r := &recorder{t: t}
		result, err := r.run(t.Context(), config(t, succeed, 2))
		if code := agent.ExitCode(result, err); code != 0 || len(r.events) == 0 {
			t.Errorf("run %d: exit code %d; %+v, %v", i, code, result, err)
		}
	}
}

// Two at a time would both act on the process's signals.
func TestRunsAtATime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &recorder{t: t}
	r.onEvent = started(1, func() {
		defer cancel()
		if _, err := agent.Run(t.Context(), config(t, succeed, 1)); !errors.Is(err, agent.ErrRunning) {
			t.Errorf("a second Run: %v", err)
		}
	})
	result, err := r.run(ctx, config(t, runsOn, 1))
	if code := agent.ExitCode(result, err); code != 143 {
		t.Errorf("the first Run: exit code %d; %+v, %v", code, result, err)
	}
}
