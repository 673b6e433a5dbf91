package tasks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdzv/wrap"
	"rdzv/wrap/internal/frames"
)

// TestRun: what Run returns and calls for workers that end by themselves.
func TestRun(t *testing.T) {
	p, task := oneTask(t)
	var calls []string
	note := func(s string) { calls = append(calls, s) }
	missing := sh(t, "")
	missing.Path = "/missing"
	results, err := runIn(task, t.Context(), wrap.Tree{
		Workers: []wrap.Worker{sh(t, "echo out; exit 3"), sh(t, "kill -9 $$"), missing},
		Started: func(i, pid int) { note("started " + string(rune('0'+i))) },
		Ended:   func(i int, r wrap.Result) { note("ended " + string(rune('0'+i))) },
	})
	if err != nil || len(results) != 3 {
		t.Fatalf("Run = %+v, %v", results, err)
	}
	if r := results[0]; r.Code != 3 || r.PID == 0 || r.Took <= 0 || r.Err != nil || r.Stopped {
		t.Errorf("worker 0: %+v", r)
	}
	if r := results[1]; r.Signal != syscall.SIGKILL || r.Stopped {
		t.Errorf("worker 1: %+v", r)
	}
	if r := results[2]; r.Code != 127 || !errors.Is(r.Err, syscall.ENOENT) ||
		r.Err.Error() != `cannot start "/missing": no such file or directory` {
		t.Errorf("worker 2: %+v", r)
	}
	slices.Sort(calls)
	want := []string{"ended 0", "ended 1", "ended 2", "started 0", "started 1"}
	if !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
	p.stdout.want("out\n")
	task.Exit(7, 0)
	if code := p.code(); code != 7 {
		t.Errorf("the task exits with %d, want 7", code)
	}
	await(t, "Lost", task.Lost())
}

// TestHello: what the agent learns about a task.
func TestHello(t *testing.T) {
	p, task := oneTask(t)
	h := task.Hello()
	if h.PID != p.Process.Pid || !slices.Equal(h.Args, p.Args) ||
		!slices.Contains(h.Env, markerEnv+"="+marker(t)) || !slices.Equal(h.Devices, []string{"/dev/null"}) {
		t.Errorf("Hello %+v", h)
	}
	if dir, _ := os.Getwd(); h.Dir != dir {
		t.Errorf("directory %q, want %q", h.Dir, dir)
	}
	if _, err := task.Files()[2].WriteString("from the agent\n"); err != nil {
		t.Error(err)
	}
	p.stdout.want("from the agent\n")
	if len(task.More()) != 1 {
		t.Fatalf("%d more files, want 1", len(task.More()))
	}
	if _, err := p.extra.WriteString("x"); err != nil {
		t.Error(err)
	}
	b := make([]byte, 1)
	if _, err := task.More()[0].Read(b); err != nil || b[0] != 'x' {
		t.Errorf("read %q, %v from the passed file", b, err)
	}
}

// TestRunAgain: Run is called once for each attempt.
func TestRunAgain(t *testing.T) {
	_, task := oneTask(t)
	for i := range 5 {
		w := sh(t, `exit "$N"`)
		w.Env = append(w.Env, "N="+string(rune('0'+i)))
		results, err := runIn(task, t.Context(), wrap.Tree{Workers: []wrap.Worker{w}})
		if err != nil || results[0].Code != i {
			t.Errorf("Run %d = %+v, %v", i, results, err)
		}
	}
}

// TestTasks: the workers of several tasks run at the same time, each in its own task.
func TestTasks(t *testing.T) {
	list, tasks := agentOf(t, 4)
	var running []<-chan outcome
	for range tasks {
		running = append(running, nil)
	}
	for i, task := range tasks {
		w := sh(t, `read -r line; echo "parent $PPID"`)
		w.Stdin = nil
		running[i], _ = begin(t, task, wrap.Tree{Workers: []wrap.Worker{w, w}})
	}
	for i, r := range running {
		o := await(t, "Run", r)
		if o.err != nil || o.results[0].Code != 0 || o.results[1].Code != 0 {
			t.Errorf("task %d: %+v", i, o)
		}
		list[i].stdout.want("parent ")
	}
}

// TestEnvironment: environment, arguments and directory reach the worker byte by byte.
func TestEnvironment(t *testing.T) {
	p, task := oneTask(t)
	dir := t.TempDir() + "/b\xffd"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w := sh(t, `printf '<%s|%s|%s|%s>' "$ODD" "$1" "$2" "${PWD##*/}"`)
	w.Args = append(w.Args, "sh", "\xff\xfe", "")
	w.Dir, w.Env = dir, append(w.Env, "ODD=a\x80\"\\\n<&>", "PWD="+dir)
	if _, err := runIn(task, t.Context(), wrap.Tree{Workers: []wrap.Worker{w}}); err != nil {
		t.Fatal(err)
	}
	p.stdout.want("<a\x80\"\\\n<&>|\xff\xfe||b\xffd>")
}

// TestOutput: logs, tags, kept output and the time of the last output.
func TestOutput(t *testing.T) {
	p, task := oneTask(t)
	name := filepath.Join(t.TempDir(), "log")
	log, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	var last wrap.LastOutput
	lost := make(chan error, 8)
	logged, captured, unlogged := sh(t, "echo one; echo two >&2"), sh(t, "echo three >&2"), sh(t, "echo four")
	logged.Output, logged.LastOutput = &wrap.Output{Log: log, Tag: "[0] ", Hold: true}, &last
	captured.Capture = true
	unlogged.Output = &wrap.Output{Log: full}
	results, err := runIn(task, t.Context(), wrap.Tree{
		Workers: []wrap.Worker{logged, captured, unlogged},
		LogLost: func(i int, reason error, bytes int64) {
			if i == 2 {
				lost <- reason
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := results[0]; string(r.Stderr) != "one\ntwo\n" || !r.Joined {
		t.Errorf("kept output %q", r.Stderr)
	}
	if r := results[1]; string(r.Stderr) != "three\n" || r.Joined {
		t.Errorf("captured output %q", r.Stderr)
	}
	if text, _ := os.ReadFile(name); string(text) != "one\ntwo\n" {
		t.Errorf("log %q", text)
	}
	if !errors.Is(await(t, "LogLost", lost), syscall.ENOSPC) {
		t.Error("the reason of LogLost is not ENOSPC")
	}
	if since := time.Since(last.Time()); since < 0 || since > limit {
		t.Errorf("last output %v ago", since)
	}
	// The workers end at the same time, so lines of others can be between those of the first.
	p.stdout.want("[0] one\n", "[0] two\n", "three\n", "four\n")
}

// TestLastOutputOfRunning: the agent sees when a worker that runs has written something.
func TestLastOutputOfRunning(t *testing.T) {
	_, task := oneTask(t)
	var last wrap.LastOutput
	w := sh(t, "sleep 0.1; echo x; exec sleep 1000")
	w.Output, w.LastOutput = &wrap.Output{}, &last
	done, end := begin(t, task, wrap.Tree{Workers: []wrap.Worker{w}})
	eventually(t, "the worker has written", func() bool { return !last.Time().IsZero() })
	end(nil)
	await(t, "Run", done)
}

type stopFunc = context.CancelCauseFunc

// TestOrders: what ends a tree, and how.
func TestOrders(t *testing.T) {
	const catches = `trap 'exit 5' TERM; trap 'exit 6' USR1; echo ready; while :; do sleep 0.01; done`
	for _, c := range []struct {
		name, script string
		end          func(end stopFunc, signals chan wrap.Event, kill chan struct{})
		code         int
		signal       syscall.Signal
		stopped      bool
	}{
		{"stop", catches, func(end stopFunc, _ chan wrap.Event, _ chan struct{}) {
			end(nil)
		}, 5, 0, true},
		{"stop groups", catches, func(end stopFunc, _ chan wrap.Event, _ chan struct{}) {
			end(&wrap.Stop{Groups: true})
		}, 5, 0, true},
		{"signal", catches, func(_ stopFunc, signals chan wrap.Event, _ chan struct{}) {
			signals <- wrap.Event{Signal: syscall.SIGUSR1, At: time.Now()}
		}, 6, 0, false},
		{"kill", catches, func(_ stopFunc, _ chan wrap.Event, kill chan struct{}) {
			close(kill)
		}, 0, syscall.SIGKILL, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, task := oneTask(t)
			signals, kill := make(chan wrap.Event), make(chan struct{})
			started := make(chan struct{})
			done, end := begin(t, task, wrap.Tree{
				Workers: []wrap.Worker{sh(t, c.script)}, Grace: time.Hour, Linger: true,
				Signals: signals, Kill: kill, Ended: func(int, wrap.Result) {},
				Started: func(int, int) { close(started) },
			})
			await(t, "Started", started)
			p.stdout.want("ready")
			c.end(end, signals, kill)
			if strings.HasPrefix(c.name, "signal") {
				eventually(t, "the worker has ended", func() bool { return len(marked(t)) == 1 })
				end(nil)
			}
			o := await(t, "Run", done)
			r := o.results[0]
			if o.err != nil || r.Code != c.code || r.Signal != c.signal || r.Stopped != c.stopped {
				t.Errorf("Run = %+v, %v", r, o.err)
			}
		})
	}
}

// TestEnded: a context that has ended starts nothing.
func TestEnded(t *testing.T) {
	_, task := oneTask(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	results, err := runIn(task, ctx, wrap.Tree{Workers: []wrap.Worker{sh(t, "exit 1")}})
	if r := results[0]; err != nil || r.PID != 0 || r.Signal != syscall.SIGTERM || !r.Stopped {
		t.Errorf("Run = %+v, %v", results, err)
	}
}

// TestStartAt: a worker waits for its time, or for StartNow.
func TestStartAt(t *testing.T) {
	_, task := oneTask(t)
	now, soon, late := make(chan struct{}), sh(t, "exit 0"), sh(t, "exit 0")
	soon.StartAt, late.StartAt = time.Now().Add(100*time.Millisecond), time.Now().Add(time.Hour)
	startedAt := make(chan time.Time, 2)
	done, _ := begin(t, task, wrap.Tree{
		Workers: []wrap.Worker{soon, late}, StartNow: now,
		Started: func(int, int) { startedAt <- time.Now() },
	})
	if at := await(t, "the start", startedAt); at.Before(soon.StartAt.Add(-5 * time.Millisecond)) {
		t.Errorf("started %v before its time", soon.StartAt.Sub(at))
	}
	close(now)
	await(t, "the start", startedAt)
	await(t, "Run", done)
}

// TestDumpStacks: workers that ignore SIGTERM print their stacks, after that has been announced.
func TestDumpStacks(t *testing.T) {
	p, task := oneTask(t)
	dump, dumps := make(chan struct{}), make(chan []wrap.Dump, 1)
	w := sh(t, `trap '' TERM; trap 'echo stacks; exit 9' ABRT; echo ready; while :; do sleep 0.01; done`)
	done, _ := begin(t, task, wrap.Tree{
		Workers: []wrap.Worker{w}, DumpStacks: dump, Dumping: func(d []wrap.Dump) { dumps <- d },
	})
	p.stdout.want("ready")
	close(dump)
	if d := await(t, "Dumping", dumps); len(d) != 1 || !d[0].IgnoresTerm {
		t.Errorf("Dumping %+v", d)
	}
	p.stdout.want("stacks")
	if r := await(t, "Run", done).results[0]; r.Code != 9 {
		t.Errorf("the worker ended with %+v", r)
	}
}

// TestNotValid: a tree that package wrap refuses.
func TestNotValid(t *testing.T) {
	_, task := oneTask(t)
	for name, tree := range map[string]wrap.Tree{
		"no workers":     {},
		"negative grace": {Workers: []wrap.Worker{sh(t, "")}, Grace: -1},
		"empty path":     {Workers: []wrap.Worker{{}}},
	} {
		results, err := runIn(task, t.Context(), tree)
		if _, want := wrap.Run(t.Context(), tree); results != nil || err == nil || err.Error() != want.Error() {
			t.Errorf("%s: Run = %v, %v, want %v", name, results, err, want)
		}
	}
}

// TestLargeTree: an environment of megabytes, and more logs than the kernel passes at once.
func TestLargeTree(t *testing.T) {
	_, task := oneTask(t)
	name := filepath.Join(t.TempDir(), "log")
	var tree wrap.Tree
	for range 2*250 + 10 {
		log, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		w := sh(t, "exit 0")
		w.Path = "/missing" // none is started
		w.Env, w.Output = append(w.Env, "X="+strings.Repeat("x", 10000)), &wrap.Output{Log: log}
		tree.Workers = append(tree.Workers, w)
	}
	results, err := runIn(task, t.Context(), tree)
	if err != nil || len(results) != len(tree.Workers) || results[len(results)-1].Code != 127 {
		t.Errorf("Run = %d results, %v", len(results), err)
	}
	for i := range tree.Workers {
		tree.Workers[i].Stdout, _ = os.Open(os.DevNull)
		defer tree.Workers[i].Stdout.Close()
	}
	if _, err = runIn(task, t.Context(), tree); !errors.Is(err, frames.ErrTooLarge) {
		t.Errorf("Run with %d logs: %v, want %v", len(tree.Workers), err, frames.ErrTooLarge)
	}
}
