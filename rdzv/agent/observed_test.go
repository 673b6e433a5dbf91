package agent_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rdzv/rdzv/agent"
	"rdzv/rdzv/agent/inspect"
	"rdzv/rdzv/status"
)

// talks writes to its stderr and runs on; rank 1 exits after that.
var talks = role("talks", func() int {
	fmt.Fprintln(os.Stderr, "text")
	if os.Getenv("LOCAL_RANK") == "1" {
		return 0
	}
	fmt.Println("ready")
	return untilStopped()
})

// statusOf asks for the only job of a name until it is as wanted.
func statusOf(t *testing.T, job string, wanted func(status.Job) bool) status.Job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	for {
		r, err := inspect.Status(ctx, job)
		switch {
		case err != nil || ctx.Err() != nil:
			t.Errorf("got %+v, %v", r, err)
			return status.Job{}
		case len(r.Jobs) == 1 && wanted(r.Jobs[0]):
			return r.Jobs[0]
		}
	}
}

func TestStatus(t *testing.T) {
	c := config(t, talks, 3)
	c.Job = "status of " + filepath.Base(t.TempDir())
	out, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c.Stdout = stdout
	if c.Stderr, err = os.Create(filepath.Join(t.TempDir(), "stderr")); err != nil {
		t.Fatal(err)
	}
	defer c.Stderr.Close()
	r := &recorder{t: t}
	ctx, stop := context.WithCancel(t.Context())
	pids := map[int]int{}
	r.onEvent = func(e agent.Event) {
		if e, ok := e.(agent.WorkerStarted); ok {
			pids[e.Rank] = e.PID
		}
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		defer stop()
		lines := bufio.NewScanner(out)
		lines.Scan()
		lines.Scan()
		j := statusOf(t, c.Job, func(j status.Job) bool {
			return len(j.Ranks) == 3 && j.Ranks[1].State == status.Exited
		})
		r.mu.Lock()
		defer r.mu.Unlock()
		checkRunning(t, j, pids)
	}()
	result, err := r.run(ctx, c)
	stdout.Close()
	<-asked
	checkCode(t, result, err, 128+15)
	if report, err := inspect.Status(t.Context(), c.Job); err != nil || len(report.Jobs) > 0 {
		t.Errorf("after the end: %+v, %v", report, err)
	}
}

func checkRunning(t *testing.T, j status.Job, pids map[int]int) {
	t.Helper()
	if j.State != status.Running || j.WorldSize != 3 || j.Nodes != 1 || j.Joined != 1 {
		t.Errorf("job %+v", j)
	}
	for i, rank := range j.Ranks {
		exited := i == 1
		if rank.Rank != i || rank.PID != pids[i] || rank.AgentPID != os.Getpid() ||
			rank.Output == nil || *rank.Output < 0 || *rank.Output > deadline.Seconds() {
			t.Errorf("rank %d: %+v; its pid is %d", i, rank, pids[i])
		}
		if exited != (rank.ExitCode != nil) || exited != (rank.CPU == nil) ||
			exited != (rank.Init == nil) || !exited && rank.State != status.Alive {
			t.Errorf("rank %d, which has exited: %t: %+v", i, exited, rank)
		}
	}
}

// A job that waits for its agents, and one that is ending, have a status too.
func TestStatusBeforeAndAfterWorld(t *testing.T) {
	c := config(t, savesAndExits, 1)
	c.Job, c.Nodes, c.Insecure = "waiting of "+filepath.Base(t.TempDir()), 2, true
	c.Store, c.JoinTimeout = "localhost", time.Hour
	r := &recorder{t: t}
	ctx, stop := context.WithCancel(t.Context())
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		defer stop()
		j := statusOf(t, c.Job, func(j status.Job) bool { return j.Joined == 1 })
		if j.State != status.Joining || j.Tasks != 2 || len(j.Waiting) != 1 || len(j.Ranks) != 0 {
			t.Errorf("job %+v", j)
		}
	}()
	result, err := r.run(ctx, c)
	<-asked
	checkCode(t, result, err, 128+15)
}
