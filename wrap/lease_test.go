package wrap

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/boottime"
	"rdzv/internal/procfs"
)

// TestLease: what ends a tree whose lease is not renewed, and when. The times begin with the lease.
func TestLease(t *testing.T) {
	const (
		d        = 500 * time.Millisecond
		margin   = 10 * time.Second
		saves    = `trap 'sleep 0.2; exit 3' TERM; echo ready; while :; do sleep 0.02; done`
		resists  = `trap "" TERM; (setsid sleep 1000 &); echo ready; while :; do sleep 0.02; done`
		succeeds = `echo ready; sleep 1.5`
	)
	for _, c := range []struct {
		name, script string
		grace        time.Duration // LeaseGrace
		then         func(l *Lease, cancel func(), began time.Duration)
		code         int
		signal       syscall.Signal
		over         bool          // Err is ErrLeaseOver
		from, to     time.Duration // when the worker ends
	}{
		{"not renewed", saves, margin, nil, 3, 0, true, d + 200*time.Millisecond, d + margin},
		{"resists", resists, d, nil, 0, syscall.SIGKILL, true, 2 * d, d + margin},
		{"no grace", resists, 0, nil, 0, syscall.SIGKILL, true, d, d + margin},
		{"renewed", succeeds, 0, func(l *Lease, _ func(), began time.Duration) {
			for until := began; until < began+6*d; until = boottime.Now() + d {
				l.Renew(until)
				time.Sleep(d / 10)
			}
		}, 0, 0, false, 0, margin},
		{"released", succeeds, 0, func(l *Lease, _ func(), _ time.Duration) { l.Release() },
			0, 0, false, 0, margin},
		{"revoked", resists, margin, func(l *Lease, _ func(), began time.Duration) {
			l.Renew(began + time.Hour)
			l.Revoke()
		}, 0, syscall.SIGKILL, false, 0, margin},
		{"revoked when it is over", resists, d, func(l *Lease, _ func(), began time.Duration) {
			time.Sleep(began + d + d/5 - boottime.Now())
			l.Revoke()
		}, 0, syscall.SIGKILL, true, 2 * d, margin},
		{"expired", saves, margin, func(l *Lease, _ func(), began time.Duration) {
			l.Renew(began + time.Hour)
			l.Expire()
			l.Renew(began + time.Hour) // has no effect
		}, 3, 0, true, 0, margin},
		{"the job ends before", resists, d,
			func(_ *Lease, cancel func(), _ time.Duration) { cancel() },
			0, syscall.SIGKILL, false, 2 * d, margin},
	} {
		t.Run(c.name, func(t *testing.T) {
			nothingLeft(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w := sh(t, c.script)
			out, l := lines(t)
			w.Stdout = out
			lease := &Lease{}
			began := boottime.Now()
			done := make(chan struct{})
			go func() {
				defer close(done)
				l.want("ready")
				began = boottime.Now()
				lease.Renew(began + d)
				if c.then != nil {
					c.then(lease, cancel, began)
				}
			}()
			var ended time.Duration
			results := mustRun(t, ctx, Tree{
				Workers: []Worker{w}, Grace: time.Hour, Lease: lease, LeaseGrace: c.grace,
				Ended: func(int, Result) { ended = boottime.Now() },
			})
			out.Close()
			<-done
			r := results[0]
			if over := r.Err == ErrLeaseOver; r.Code != c.code || r.Signal != c.signal || over != c.over {
				t.Errorf("the worker ended with %+v", r)
			}
			if took := ended - began; took < c.from || took > c.to {
				t.Errorf("the worker ended after %v, want %v to %v", took, c.from, c.to)
			}
		})
	}
}

// No worker starts after the end of a lease, until that is renewed.
func TestLeaseOverBeforeStart(t *testing.T) {
	nothingLeft(t)
	lease := &Lease{}
	lease.Renew(boottime.Now() - time.Second)
	renewed := make(chan time.Time, 1)
	time.AfterFunc(300*time.Millisecond, func() {
		renewed <- time.Now()
		lease.Renew(boottime.Now() + time.Hour)
	})
	var started time.Time
	results := mustRun(t, t.Context(), Tree{
		Workers: []Worker{sh(t, "exit 0")}, Lease: lease,
		Started: func(int, int) { started = time.Now() },
	})
	if at := <-renewed; started.Before(at) || results[0].ExitCode() != 0 {
		t.Errorf("the worker started %v after the renewal: %+v", started.Sub(at), results[0])
	}
}

// No worker runs whose lease was revoked before.
func TestLeaseRevokedBeforeRun(t *testing.T) {
	nothingLeft(t)
	lease := &Lease{}
	lease.Revoke()
	r := begin(t, Tree{Workers: []Worker{sh(t, "exec sleep 1000")}, Grace: longGrace, Lease: lease})
	results, err := r.wait()
	if err != nil || !results[0].Stopped {
		t.Errorf("Run = %+v, %v", results, err)
	}
}

// leasedAgent is an agent of a resistantTree whose lease each line on its stdin renews for that
// duration; "revoke" revokes it.
var leasedAgent = role("leased agent", func() {
	lease := &Lease{}
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			if d, err := time.ParseDuration(in.Text()); err == nil {
				lease.Renew(boottime.Now() + d)
				fmt.Println("renewed")
			} else {
				lease.Revoke()
			}
		}
	}()
	_, err := Run(ctxNever, Tree{
		Workers: []Worker{{
			Path: "/bin/sh", Args: []string{"sh", "-c", resistantTree}, Env: os.Environ(),
			Stdout: os.Stdout, Stderr: os.Stderr,
		}},
		Source: Signals(syscall.SIGTERM), Lease: lease, LeaseGrace: 100 * time.Millisecond,
		FrozenLimit: time.Hour,
	})
	fmt.Println("returned", err)
})

// leasedTree is a leasedAgent and its tree.
type leasedTree struct {
	t       *testing.T
	agent   int
	runner  int
	workers []int // and their descendants
	out     lineReader
	order   *os.File
}

func startLeased(t *testing.T) *leasedTree {
	t.Helper()
	r, order, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { order.Close() })
	cmd, out := startAgent(t, 1, func(c *exec.Cmd) {
		c.Env = append(c.Env, roleEnv+"="+leasedAgent)
		c.Stdin = r
	})
	r.Close()
	tree := &leasedTree{t: t, agent: cmd.Process.Pid, out: out, order: order}
	tree.runner = runnerOf(t, tree.agent)
	for _, p := range marked(marker(t)) {
		if p.PID != tree.agent {
			tree.workers = append(tree.workers, p.PID)
		}
	}
	tree.renew(leaseTime)
	time.Sleep(leaseTime / 6) // a process without a lease does not notice that it is stopped
	return tree
}

// renew renews the lease. The runner sees that.
func (l *leasedTree) renew(d time.Duration) {
	l.t.Helper()
	l.write(d.String())
	l.out.want("renewed")
}

func (l *leasedTree) write(line string) {
	l.t.Helper()
	if _, err := fmt.Fprintln(l.order, line); err != nil {
		l.t.Fatal(err)
	}
}

func (l *leasedTree) all() []int { return append([]int{l.agent, l.runner}, l.workers...) }

func (l *leasedTree) signal(s syscall.Signal, pids ...int) {
	l.t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil && err != syscall.ESRCH {
			l.t.Fatal(err)
		}
	}
}

// in waits until the workers and their descendants are stopped, or are not. Some shells among them
// end soon after the others run.
func (l *leasedTree) in(want bool) {
	l.t.Helper()
	eventually(l.t, fmt.Sprintf("the tree is stopped: %t", want), func() bool {
		l.workers = slices.DeleteFunc(l.workers, dead)
		return len(l.workers) > 0 && !slices.ContainsFunc(l.workers, func(pid int) bool {
			return procfs.IsStopped(procfs.System, pid) != want
		})
	})
}

// stopTime stops processes until the lease is over, and then as long as they would notice.
const (
	leaseTime = 3 * time.Second // longer than a busy machine needs until all are stopped
	stopTime  = leaseTime + 700*time.Millisecond
)

// TestContinuedTree: when agent, runner and workers are continued after their lease the agent stops
// the workers at once, until the agent has renewed it.
func TestContinuedTree(t *testing.T) {
	nothingLeft(t)
	l := startLeased(t)
	var delays []time.Duration
	for i := range 3 {
		l.renew(leaseTime)
		l.in(false)
		all := l.all()
		if i%2 == 1 {
			slices.Reverse(all)
		}
		l.signal(syscall.SIGSTOP, all...)
		time.Sleep(stopTime)
		began := time.Now()
		l.signal(syscall.SIGCONT, all...)
		l.in(true)
		delays = append(delays, time.Since(began))
	}
	slices.Sort(delays)
	t.Logf("stopped %v after SIGCONT (median of %d; %v at most)", delays[len(delays)/2], len(delays),
		delays[len(delays)-1])
	l.renew(leaseTime)
	l.in(false)
	l.signal(syscall.SIGSTOP, l.all()...)
	time.Sleep(stopTime)
	l.signal(syscall.SIGCONT, l.all()...)
	l.in(true)
	l.signal(syscall.SIGKILL, l.agent)
}

// TestContinuedWorkers: all workers are stopped, as by Ctrl-Z, when their lease ends. Descendants
// that run are stopped then. When the workers are continued they are stopped again, until the agent
// has renewed the lease. What was stopped before stays stopped.
func TestContinuedWorkers(t *testing.T) {
	nothingLeft(t)
	l := startLeased(t)
	l.renew(leaseTime)
	isWorker := func(pid int) bool { // its other children are descendants that it has adopted
		line := procfs.Arguments(procfs.System, pid)
		return len(line) == 3 && line[2] == resistantTree
	}
	worker := procfs.FindDescendant(procfs.System, l.runner, isWorker)
	l.signal(syscall.SIGSTOP, worker)
	l.in(true)
	l.renew(leaseTime)
	eventually(t, "the descendants run", func() bool {
		return slices.ContainsFunc(l.workers, func(pid int) bool { return !procfs.IsStopped(procfs.System, pid) })
	})
	if !procfs.IsStopped(procfs.System, worker) {
		t.Error("a worker that was stopped before was continued")
	}
	l.in(true)
	l.signal(syscall.SIGCONT, worker)
	l.in(true)
	l.renew(time.Hour)
	l.in(false)
	l.write("revoke")
	l.out.want("returned <nil>")
}
