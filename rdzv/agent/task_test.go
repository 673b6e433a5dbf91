package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/wrap"
)

// tellsRank writes who it is to stdout; the one of rank 2 fails if FAILS is set.
var tellsRank = role("tells-rank", func() int {
	fmt.Printf("%s %s/%s of %s at %s\n", os.Getenv("TASK"), os.Getenv("RANK"),
		os.Getenv("LOCAL_RANK"), os.Getenv("WORLD_SIZE"), os.Getenv("MASTER_ADDR"))
	if os.Getenv("FAILS") == "" {
		return 0
	}
	if os.Getenv("RANK") == "2" {
		return 7
	}
	return untilStopped()
})

// tasks are those of mpirun on one node, whose workers run below this process. The first one is the
// agent's own. Their workers write to the files, in the order of their ranks.
func tasks(t *testing.T, ranks ...int) (own agent.Config, files []*os.File) {
	t.Helper()
	own = config(t, tellsRank, 1)
	own.ProcsPerNode = ""
	for i, rank := range ranks {
		environ := append(slices.Clone(own.Environ), fmt.Sprintf("TASK=%d", i),
			fmt.Sprintf("OMPI_COMM_WORLD_RANK=%d", rank), fmt.Sprintf("OMPI_COMM_WORLD_LOCAL_RANK=%d", i),
			fmt.Sprintf("OMPI_COMM_WORLD_SIZE=%d", len(ranks)),
			fmt.Sprintf("OMPI_COMM_WORLD_LOCAL_SIZE=%d", len(ranks)), fmt.Sprintf("PMIX_RANK=%d", rank))
		file, err := os.CreateTemp(t.TempDir(), "stdout")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		files = append(files, file)
		signals := wrap.RemoteSignals()
		t.Cleanup(signals.Close)
		own.Tasks = append(own.Tasks, agent.Task{
			PID: os.Getpid(), Environ: environ, Stdout: file, Run: wrap.Run,
			Signals: signals, Lost: make(chan struct{}), HasDied: func() bool { return false },
			Remaining: func() []wrap.Process { return nil },
		})
	}
	own.Environ, own.Stdout = own.Tasks[0].Environ, files[0]
	own.Tasks = own.Tasks[1:]
	return own, files
}

// An agent runs the workers of several tasks, each with the rank, variables and streams of its task.
func TestTasks(t *testing.T) {
	for name, ranks := range map[string][]int{
		"by slot": {0, 1, 2, 3}, "backwards": {3, 2, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c, files := tasks(t, ranks...)
			r := &recorder{t: t}
			result, err := r.run(t.Context(), c)
			checkCode(t, result, err, 0)
			if w := result.World; w.Size != 4 || w.Agents != 1 || w.Nodes != 1 {
				t.Errorf("world %+v, want 4 workers of 1 agent", w)
			}
			for i, rank := range ranks {
				text, _ := os.ReadFile(files[i].Name())
				want := fmt.Sprintf("%d %d/%d of 4 at 127.0.0.1\n", i, rank, i)
				if string(text) != want {
					t.Errorf("task %d wrote %q, want %q", i, text, want)
				}
			}
		})
	}
}

// The first failure of any task's worker stops the workers of all.
func TestTaskFails(t *testing.T) {
	r := &recorder{t: t}
	result, err := r.run(t.Context(), failing(t))
	checkCode(t, result, err, 7)
	v := result.Verdict
	if v == nil || v.Kind != rdzv.Failed || v.Rank != 2 || v.LocalRank != 2 {
		t.Errorf("verdict %+v, want the failure of rank 2", v)
	}
	var exited []string
	for _, e := range r.events {
		if e, is := e.(agent.WorkerExited); is {
			exited = append(exited, fmt.Sprint(e.Rank))
			if failed := e.Rank == 2; e.Stopped == failed {
				t.Errorf("rank %d was stopped: %t", e.Rank, e.Stopped)
			}
		}
	}
	if slices.Sort(exited); strings.Join(exited, " ") != "0 1 2 3" {
		t.Errorf("ranks %q have ended, want all 4, each once", exited)
	}
}

// failing are tasks of which the workers fail, or run until they are stopped.
func failing(t *testing.T) agent.Config {
	t.Helper()
	c, _ := tasks(t, 0, 1, 2, 3)
	c.Environ = append(c.Environ, "FAILS=1")
	for i := range c.Tasks {
		c.Tasks[i].Environ = append(c.Tasks[i].Environ, "FAILS=1")
	}
	return c
}

// cannotRun is [agent.Task.Run] of a task that cannot run workers.
func cannotRun(context.Context, wrap.Tree) ([]wrap.Result, error) {
	return nil, errors.New("no more processes")
}

// If the workers of one task cannot be run its first one has failed, and no other.
func TestTaskCannotRun(t *testing.T) {
	c := failing(t)
	c.Tasks[0].Run = cannotRun
	r := &recorder{t: t}
	result, err := r.run(t.Context(), c)
	checkCode(t, result, err, agent.CodeAgent)
	v := result.Verdict
	if v == nil || v.Kind != rdzv.Failed || v.Rank != 1 || v.Text != "no more processes" {
		t.Errorf("verdict %+v, want the failure of rank 1", v)
	}
	for _, f := range result.Failures {
		if f.Rank != 2 { // which may fail at the same time
			t.Errorf("%+v failed too", f)
		}
	}
}

// ends is [agent.Task.Run] of a task whose worker ends like this when before is closed. after is closed
// then.
func ends(r wrap.Result, before, after chan struct{}) func(context.Context, wrap.Tree) ([]wrap.Result, error) {
	return func(_ context.Context, tree wrap.Tree) ([]wrap.Result, error) {
		<-before
		tree.Ended(0, r)
		close(after)
		return []wrap.Result{r}, nil
	}
}

// A worker that has lost its connection to another one may end first. It is not reported as the first
// that has failed.
func TestConsequenceEndsFirst(t *testing.T) {
	c, begin, next, end := failing(t), make(chan struct{}), make(chan struct{}), make(chan struct{})
	close(begin)
	c.Tasks[0].Run = ends(wrap.Result{Code: 1, Stderr: []byte("Connection reset by peer\n")}, begin, next)
	c.Tasks[1].Run = ends(wrap.Result{Code: 7}, next, end)
	r := &recorder{t: t}
	result, err := r.run(t.Context(), c)
	checkCode(t, result, err, 7)
	if v := result.Verdict; v == nil || v.Kind != rdzv.Failed || v.Rank != 2 {
		t.Errorf("verdict %+v, want the failure of rank 2", v)
	}
}

// A worker that died of a signal to its process group has not failed: the job was stopped.
func TestGroupSignal(t *testing.T) {
	c, begin, end := failing(t), make(chan struct{}), make(chan struct{})
	close(begin)
	stopped := wrap.Result{Signal: syscall.SIGTERM, GroupSignal: syscall.SIGTERM}
	c.Tasks[1].Run = ends(stopped, begin, end)
	r := &recorder{t: t}
	result, err := r.run(t.Context(), c)
	checkCode(t, result, err, 128+15)
	if v := result.Verdict; v == nil || v.Kind != rdzv.Ended || v.Signal != rdzv.Signal(syscall.SIGTERM) {
		t.Errorf("verdict %+v, want that SIGTERM has ended the job", v)
	}
}

// An agent settles also if it has lost a task and cannot run the workers of another one.
func TestTaskLostAndTaskCannotRun(t *testing.T) {
	c := failing(t)
	c.Tasks[0].Run = cannotRun
	c.Tasks[2].Run = func(_ context.Context, tree wrap.Tree) ([]wrap.Result, error) {
		return killed(tree, wrap.ErrRunner), wrap.ErrRunner
	}
	r := &recorder{t: t}
	if result, err := r.run(t.Context(), c); err != nil || !result.Settled {
		t.Errorf("Run: %+v, %v, want all agents settled", result, err)
	}
}

// killed are the results if the workers of a task have been killed for this reason.
func killed(tree wrap.Tree, why error) (results []wrap.Result) {
	for i := range tree.Workers {
		r := wrap.Result{Signal: syscall.SIGKILL, Stopped: true, Err: why}
		tree.Ended(i, r)
		results = append(results, r)
	}
	return results
}

// Whether a task has died, or only the runner of its workers, does not depend on how the errors are
// written.
func TestTaskOrRunnerLost(t *testing.T) {
	inTask := fmt.Errorf("in the task: %w", wrap.ErrRunner)
	for _, test := range []struct {
		died   bool
		worker error // nil if all had ended
		run    error
		want   string
	}{
		{false, wrap.ErrRunner, wrap.ErrRunner, "lost the runner of rank 2"},
		{false, inTask, inTask, "lost the runner of rank 2"},
		{false, nil, inTask, "lost the runner of rank 2"},
		{true, wrap.ErrRunner, wrap.ErrRunner, "lost the task of rank 2"},
		{true, inTask, inTask, "lost the task of rank 2"},
		{true, nil, wrap.ErrRunner, "lost the task of rank 2"},
	} {
		c, gone := failing(t), make(chan struct{})
		c.Tasks[1].Lost, c.Tasks[1].HasDied = gone, func() bool { return test.died }
		c.Tasks[1].Run = func(_ context.Context, tree wrap.Tree) ([]wrap.Result, error) {
			if test.died {
				close(gone)
			}
			return killed(tree, test.worker), test.run
		}
		r := &recorder{t: t}
		result, err := r.run(t.Context(), c)
		v := result.Verdict
		if err != nil || v == nil || v.Kind != rdzv.Lost || !strings.HasPrefix(v.Text, test.want) {
			t.Errorf("%+v: verdict %+v, %v", test, v, err)
		}
	}
}
