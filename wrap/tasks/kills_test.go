package tasks

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
	"rdzv/internal/proctest"
	"rdzv/wrap"
	"rdzv/wrap/internal/parent"
)

// kills is how many jobs TestKills kills processes of; make kills uses more.
var kills = flag.Int("kills", 5, "number of jobs of which TestKills kills processes")

// hardToKill is a worker that ignores signals, and whose descendants are found by nothing but their
// pids: with other sessions, parents that have ended, and without an environment.
const hardToKill = `trap "" TERM INT HUP QUIT USR1 USR2 ABRT
sh -c 'sleep 1000 & wait' &
setsid sleep 1000 &
(setsid sh -c 'sleep 1000 & (setsid sleep 1000 &); sleep 1000' &)
env -i setsid sleep 1000 &
(env -i setsid sh -c 'sleep 1000 & wait' &)
while :; do sleep 0.05; done`

// killedAgent is the agent of three tasks. It and they have a worker each. The first that ends ends the
// job.
var killedAgent = role("killed agent", func() {
	l, _, err := Meet(os.Getenv(addrEnv), true)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("bound")
	ctx, cancel := context.WithCancel(context.Background())
	tree := wrap.Tree{
		Workers: []wrap.Worker{{
			Path: "/bin/sh", Args: []string{"sh", "-c", hardToKill}, Env: os.Environ(),
			Stdout: os.Stdout, Stderr: os.Stderr,
		}},
		Grace: 100 * time.Millisecond, FrozenLimit: time.Second,
	}
	var running sync.WaitGroup
	running.Go(func() {
		defer cancel()
		own := tree
		own.Workers = slices.Clone(tree.Workers)
		_, _ = wrap.Run(ctx, own)
	})
	l.wait = time.Second
	tasks := l.Tasks(ctx, killedTasks)
	if len(tasks) < killedTasks {
		cancel()
	}
	for _, task := range tasks {
		running.Go(func() {
			defer cancel()
			_, _ = runIn(task, ctx, tree)
		})
	}
	running.Wait()
	for _, task := range tasks {
		task.Exit(0, 0)
	}
})

const killedTasks = 3

// killKinds are what TestKills kills of an agent or a stub, in this order.
var killKinds = []struct {
	name    string
	victims func(of prey) []prey
}{
	{"itself", func(of prey) []prey { return []prey{of} }},
	{"runner", func(of prey) []prey { return []prey{of.runner()} }},
	{"worker", func(of prey) []prey { return []prey{of.worker()} }},
	{"worker and runner", func(of prey) []prey { return []prey{of.worker(), of.runner()} }},
	{"worker and itself", func(of prey) []prey { return []prey{of.worker(), of} }},
	{"itself, later runner", func(of prey) []prey { return []prey{of, of.runner().later()} }},
	{"runner, later itself", func(of prey) []prey { return []prey{of.runner(), of.later()} }},
}

// choice is what is killed of an agent or a stub, or of all.
type choice struct {
	name    string
	victims []prey // in this order; those that have not been started have the pid 0
}

// choose chooses what is killed of a job: the agent and all stubs, as "pkill -9 rdzv" does, or
// something of one or more of them.
func choose(all []prey) (choices []choice) {
	rand.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	if rand.IntN(len(killKinds)+1) == 0 {
		return []choice{{"agent and stubs", all}}
	}
	for _, of := range all[:1+rand.IntN(len(all))] {
		k := killKinds[rand.IntN(len(killKinds))]
		choices = append(choices, choice{of.kind + ": " + k.name, k.victims(of)})
	}
	return choices
}

// endsJob tells whether a job ends when its victims are killed.
func (c choice) endsJob() bool {
	return slices.ContainsFunc(c.victims, func(v prey) bool { return v.pid != 0 && !v.idle })
}

// prey is a process that is killed.
type prey struct {
	kind  string
	pid   int
	after time.Duration // of processor time, which it is to have had since the one before has ended
	idle  bool          // it is a runner without a worker yet: its stub starts another one
}

// later is for the second of a runner and its parent, for which nothing is promised before it has
// had a processor for 4 ms. It needs 1 to 2 ms to kill everything, and more on a very busy machine: at
// a load of 70 on 2 processors something was left after 2.6 ms. There it may have to wait for that
// processor for much longer.
func (p prey) later() prey {
	p.after = 4*time.Millisecond + rand.N(4*time.Millisecond)
	return p
}

// awaitTime waits until the process has had its time, or has ended, after another one has ended. It
// returns the time.
func (p prey) awaitTime(t *testing.T, other int) time.Duration {
	t.Helper()
	eventually(t, "the victim before has ended", func() bool { return proctest.HasEnded(other) })
	return proctest.AwaitProcessorTime(p.pid, p.after)
}

// runner is that of an agent or a task.
func (of prey) runner() prey {
	r := prey{kind: "runner of the " + of.kind}
	children, _ := procfs.Children(procfs.System, of.pid)
	for _, pid := range children {
		if s, err := procfs.Read(procfs.System, pid); err == nil && s.Name == parent.Name {
			r.pid = pid
		}
	}
	r.idle = workerOf(r.pid) == 0
	return r
}

// worker is that of an agent or a task.
func (of prey) worker() prey { return prey{kind: "worker", pid: workerOf(of.runner().pid)} }

// workerOf is the first child of a runner that leads a process group in its session, 0 if there is
// none. It has adopted others.
func workerOf(runner int) int {
	if runner == 0 {
		return 0
	}
	session, _ := unix.Getsid(runner)
	children, _ := procfs.Children(procfs.System, runner)
	for _, pid := range children {
		group, _ := unix.Getpgid(pid)
		if own, _ := unix.Getsid(pid); group == pid && own == session {
			return pid
		}
	}
	return 0
}

// TestKills kills processes of jobs at random moments, from the start of the tasks on: each job ends,
// and nothing is left, not even a process that has left sessions and environment.
func TestKills(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	// What other tests do not expect: an orphan remains a child of this process.
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	var killed proctest.Kills
	survivors := 0
	for n := range *kills {
		t.Run(fmt.Sprint(n), func(t *testing.T) { survivors += killSome(t, &killed) })
		if n%100 == 99 {
			t.Logf("%d jobs, %d SIGKILLs, %d survivors", n+1, killed.Sum(), survivors)
		}
	}
	t.Logf("%d jobs, %d SIGKILLs, %d survivors\n%v", *kills, killed.Sum(), survivors, &killed)
}

// killSome starts a job, kills some of its processes, and waits for its end. It returns how many
// processes were left.
func killSome(t *testing.T, killed *proctest.Kills) (survivors int) {
	const most = 200 * time.Millisecond // by then all processes run, mostly
	addr := address(t)
	agent := start(t, killedAgent, addr)
	agent.stdout.want("bound")
	started, all := []*process{agent}, []prey{{kind: "agent", pid: agent.Process.Pid}}
	for range killedTasks {
		stub := start(t, aTask, addr)
		started, all = append(started, stub), append(all, prey{kind: "stub", pid: stub.Process.Pid})
	}
	time.Sleep(rand.N(most))
	choices := choose(all)
	if !slices.ContainsFunc(choices, choice.endsJob) { // not after a runner: it may have a worker now
		choices = []choice{{"early: agent and stubs", all}}
	}
	report, begun := "", time.Now()
	for _, c := range choices {
		n := 0
		for i, v := range c.victims {
			had := time.Duration(0)
			if v.after > 0 && c.victims[i-1].pid != 0 {
				had = v.awaitTime(t, c.victims[i-1].pid)
			}
			if v.kill() {
				n++
				report += fmt.Sprintf("%s: %s %d after %v", c.name, v.kind, v.pid, time.Since(begun))
				if had > 0 {
					report += fmt.Sprintf(", of which it had a processor for %v", had)
				}
				report += "\n"
			}
		}
		killed.Add(c.name, len(c.victims), n)
	}
	return awaitEnd(t, started, report)
}

// TestRunnerOfStoppedTaskIsKilled: the job ends, and nothing is left, although the task alone can kill
// what its runner has left.
func TestRunnerOfStoppedTaskIsKilled(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	addr := address(t)
	agent := start(t, killedAgent, addr)
	agent.stdout.want("bound")
	started := []*process{agent}
	for range killedTasks {
		started = append(started, start(t, aTask, addr))
	}
	stub := prey{kind: "stub", pid: started[1].Process.Pid}
	eventually(t, "it has a worker", func() bool { return stub.worker().pid != 0 })
	runner := stub.runner()
	_ = syscall.Kill(stub.pid, syscall.SIGSTOP)
	eventually(t, "the stub is stopped", func() bool { return state(stub.pid) == 'T' })
	_ = syscall.Kill(runner.pid, syscall.SIGKILL)
	awaitEnd(t, started, "")
}

// kill kills the process, unless it has ended or has not been started.
func (p prey) kill() bool {
	if p.pid == 0 {
		return false
	}
	s := state(p.pid)
	return s != 0 && s != 'Z' && syscall.Kill(p.pid, syscall.SIGKILL) == nil
}

// aloneTime is how long processes of a job that cannot be killed by it any more may take to end.
const aloneTime = 2 * time.Second

// awaitEnd waits until all tasks of a job have ended, and counts what they have left: this process
// adopts it.
func awaitEnd(t *testing.T, started []*process, what string) (survivors int) {
	t.Helper()
	ended := func() bool {
		return !slices.ContainsFunc(started, func(p *process) bool {
			select {
			case <-p.ended:
				return false
			default:
				return true
			}
		})
	}
	var left []string
	var alone time.Time // when nobody was left who kills others
	for late := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		left = left[:0]
		runs := false
		children, _ := procfs.Children(procfs.System, os.Getpid())
		for _, pid := range children {
			isOwn := func(p *process) bool { return p.Process.Pid == pid }
			if slices.ContainsFunc(started, isOwn) {
				continue
			}
			if got, _ := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); got != pid {
				runs = runs || isRunner(pid)
				left = append(left, strings.Join(procfs.Arguments(procfs.System, pid), " "))
			}
		}
		if runs || !ended() {
			alone = time.Time{}
		} else if alone.IsZero() {
			alone = time.Now()
		}
		switch {
		case len(left) == 0 && ended():
			return 0
		case time.Now().After(late), !alone.IsZero() && time.Since(alone) > aloneTime:
			t.Errorf("%sthe processes %q are left; all tasks have ended: %t", what, left, ended())
			killChildren()
			return len(left)
		}
	}
}

// killChildren kills all descendants of this process.
func killChildren() {
	for {
		children, _ := procfs.Children(procfs.System, os.Getpid())
		if len(children) == 0 {
			return
		}
		for _, pid := range children {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
		time.Sleep(time.Millisecond)
	}
}
