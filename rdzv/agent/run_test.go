package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

// The workers of these tests.
var (
	// failsAtEOF fails as local rank 0 at the end of its stdin, with an error file that the agent
	// has to remove; other ranks run until they are stopped.
	failsAtEOF = role("fails-at-eof", func() int {
		if os.Getenv("LOCAL_RANK") != "0" {
			return untilStopped()
		}
		io.Copy(io.Discard, os.Stdin)
		os.WriteFile(os.Getenv("TORCHELASTIC_ERROR_FILE"), []byte("{}"), 0o600)
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

// untilStopped waits until a signal ends this process. It needs a timer: without one the runtime
// would report a deadlock.
func untilStopped() int {
	<-time.After(time.Hour)
	return 1
}

// recorder records the events of a Run. onEvent, which may be nil, is called with each of them.
type recorder struct {
	t       *testing.T
	mu      sync.Mutex // held while an event is handled
	events  []agent.Event
	onEvent func(agent.Event)
	ended   bool // Run has returned
}

func (r *recorder) event(e agent.Event) {
	if !r.mu.TryLock() {
		r.t.Errorf("event %s while another one is handled, want one at a time", e.Type())
		return
	}
	defer r.mu.Unlock()
	if r.ended {
		r.t.Errorf("event %s after Run has returned, want none", e.Type())
	}
	r.events = append(r.events, e)
	if r.onEvent != nil {
		r.onEvent(e)
	}
}

// run runs an agent, and fails the test if processes, files or goroutines of it are left.
func (r *recorder) run(ctx context.Context, c agent.Config) (agent.Result, error) {
	r.t.Helper()
	c.Events = r.event
	checkLeft, before := noneLeft(r.t, c.Environ), goleak.IgnoreCurrent()
	result, err := agent.Run(ctx, c)
	checkLeft()
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	goleak.VerifyNone(r.t, before)
	return result, err
}

// checkCode checks the exit code of what Run returned.
func checkCode(t *testing.T, result agent.Result, err error, want int) {
	t.Helper()
	if got := agent.ExitCode(result, err); got != want {
		t.Errorf("exit code %d, want %d; Run returned %+v, %v", got, want, result, err)
	}
}

// types lists the types of the events, without events that depend on the machine.
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

// A worker that was killed may have run out of memory. There is a hint at that unless its cgroup
// tells how many processes the kernel has killed for this reason.
func TestKilledWorkerHint(t *testing.T) {
	silent := fstest.MapFS{}
	telling := fstest.MapFS{
		"proc/self/cgroup":                {Data: []byte("0::/job\n")},
		"sys/fs/cgroup/job/memory.events": {Data: []byte("oom 0\noom_kill 3\n")},
	}
	for _, c := range []struct {
		name string
		root fs.FS
		want bool
	}{{"silent", silent, true}, {"telling", telling, false}} {
		t.Run(c.name, func(t *testing.T) {
			r := &recorder{t: t}
			r.onEvent = func(e agent.Event) {
				if started, ok := e.(agent.WorkerStarted); ok {
					syscall.Kill(started.PID, syscall.SIGKILL)
				}
			}
			config := config(t, runsOn, 1)
			config.Root = c.root
			result, err := r.run(t.Context(), config)
			checkCode(t, result, err, 128+9)
			if f := result.Failure; f == nil || f.OOM ||
				strings.Contains(f.Hint, "dmesg") != c.want {
				t.Errorf("failure %+v; want a hint at dmesg: %t", f, c.want)
			}
		})
	}
}

func TestAllWorkersSucceed(t *testing.T) {
	r := &recorder{t: t}
	result, err := r.run(t.Context(), config(t, succeed, 8))
	checkCode(t, result, err, 0)
	if v := result.Verdict; v == nil || v.Kind != rdzv.Done || !result.Settled || !result.Hosting {
		t.Errorf("Run: %+v, verdict %+v; want done, settled and hosting", result, v)
	}
	if result.World.Size != 8 || result.Job == "" || result.Failure != nil {
		t.Errorf("Run: %+v; want a job of 8 workers without a failure", result)
	}
	want := slices.Concat(
		[]string{"placed", "store_found", "world_agreed"},
		slices.Repeat([]string{"worker_exited"}, 8), slices.Repeat([]string{"worker_started"}, 8),
		[]string{"job_ended", "finished"},
	)
	got := r.types()
	if len(got) == len(want) {
		slices.Sort(got[3 : len(got)-2]) // some workers end before others start
	}
	if !slices.Equal(got, want) {
		t.Errorf("events, those of workers sorted: %q\nwant %q", got, want)
	}
}

// Events are reported in the order in which they happen: a worker's failure before the job's end.
func TestWorkerFails(t *testing.T) {
	stdin, stdinWriter, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	r := &recorder{t: t, onEvent: started(3, func() { stdinWriter.Close() })}
	c := config(t, failsAtEOF, 3)
	c.Stdin, c.Stderr, c.Job, c.Grace = stdin, stderr, "test", deadline
	result, err := r.run(t.Context(), c)
	checkCode(t, result, err, 3)
	want := []string{
		"placed", "store_found", "world_agreed", "worker_started", "worker_started",
		"worker_started",
		"worker_exited", "job_ended", "worker_exited", "worker_exited", "failure_reported",
		"finished",
	}
	if got := r.types(); !slices.Equal(got, want) {
		t.Errorf("events %q\nwant %q", got, want)
	}
	if f := result.Failure; f == nil || f.Rank != 0 || f.Code != 3 || f.WorldSize != 3 ||
		f.Job != "test" ||
		f.Message != "ValueError: no such data set" || len(f.Stderr) < 2 ||
		f.Stderr[1] != "ValueError: no such data set" { // a test with -cover adds a line
		t.Errorf("failure %+v; want rank 0 of 3, code 3, the traceback of 2 lines", f)
	}
	for _, e := range r.events {
		switch e := e.(type) {
		case agent.WorkerExited:
			first, terminated := e.Rank == 0, e.Signal == rdzv.Signal(syscall.SIGTERM)
			if e.Stopped == first || terminated == first || e.PID == 0 || e.RanFor <= 0 {
				t.Errorf("event %+v; want rank 0 to fail and the others to be stopped by SIGTERM",
					e)
			}
		case agent.JobEnded:
			if v := e.Verdict; !e.Own || !e.Hosting || v.Kind != rdzv.Failed || v.Rank != 0 ||
				v.Code != 3 {
				t.Errorf("event %+v, verdict %+v; want this agent's failure of rank 0", e, v)
			}
		}
	}
}

// When the caller's context ends, the job is stopped as by SIGTERM to this process.
func TestContextEnds(t *testing.T) {
	for _, c := range []struct {
		role string
		code int
	}{{runsOn, 143}, {savesAndExits, 143}} {
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
			checkCode(t, result, err, c.code)
			v := result.Verdict
			if v == nil || v.Kind != rdzv.Ended || v.Signal != rdzv.Signal(syscall.SIGTERM) ||
				v.PID != os.Getpid() {
				t.Errorf("verdict %+v; want SIGTERM to process %d", v, os.Getpid())
			}
			if v != nil && !strings.HasSuffix(v.Error(), " was stopped by its caller") {
				t.Errorf("verdict %q, want that its caller has stopped it", v)
			}
		})
	}
}

// If the context has ended before Run, the agent does not search for the others.
func TestContextEndedBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := config(t, succeed, 1)
	c.Nodes, c.Insecure, c.Store = 2, true, "127.0.0.1"
	result, err := (&recorder{t: t}).run(ctx, c)
	checkCode(t, result, err, 143)
	if signal := (&agent.SignalError{}); !errors.As(err, &signal) {
		t.Errorf("Run: error %v, want a SignalError", err)
	}
	if want := "stopped by its caller before the job started"; err.Error() != want {
		t.Errorf("Run: error %q, want %q", err, want)
	}
}

// A missing program is a problem in the verdict, not an error of Run.
func TestProgramMissing(t *testing.T) {
	r := &recorder{t: t}
	c := config(t, succeed, 2)
	c.Program = []string{"no-such-program"}
	result, err := r.run(t.Context(), c)
	checkCode(t, result, err, agent.CodeMissing)
	v := result.Verdict
	if err != nil || v == nil || v.Kind != rdzv.Unready || len(v.Problems) != 1 {
		t.Fatalf("Run: verdict %+v, error %v; want a verdict with one problem", v, err)
	}
	if got := v.Problems[0].Kind; got != rdzv.ProgramMissing {
		t.Errorf("problem %q, want %q", got, rdzv.ProgramMissing)
	}
	want := []string{"placed", "store_found", "job_ended", "finished"}
	if got := r.types(); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}
