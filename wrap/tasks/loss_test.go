package tasks

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/boottime"
	"rdzv/internal/procfs"
	"rdzv/wrap"
)

// resistant is a tree that ignores SIGTERM, with a descendant in another session and an orphan.
const resistant = `trap '' TERM; (setsid sleep 1000 &); sh -c 'sleep 1000 & exec sleep 1000' &
echo ready; while :; do sleep 0.05; done`

// leavesResistant is a worker that ends and leaves a process.
const leavesResistant = `sh -c 'trap "" TERM; echo ready; while :; do sleep 0.05; done' & exit 0`

// limitEnv is Tree.FrozenLimit of anAgent, and scriptEnv the script that it runs instead of
// resistant.
const (
	limitEnv  = "TASKS_TEST_FROZEN_LIMIT"
	scriptEnv = "TASKS_TEST_SCRIPT"
)

// anAgent is the agent of one task, in which it runs a script with a lease that it renews as long
// as it runs itself. It has no workers of its own.
var anAgent = role("agent", func() {
	l, _, err := Meet(os.Getenv(addrEnv), true)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("bound")
	l.wait = limit
	tasks := l.Tasks(context.Background(), 1)
	frozen, _ := time.ParseDuration(os.Getenv(limitEnv))
	script := cmp.Or(os.Getenv(scriptEnv), resistant)
	lease := &wrap.Lease{}
	if frozen == 0 {
		go func() {
			for tick := time.Tick(leaseTime / 20); ; <-tick {
				lease.Renew(boottime.Now() + leaseTime)
			}
		}()
	}
	results, err := runIn(tasks[0], context.Background(), wrap.Tree{
		Workers: []wrap.Worker{{
			Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ(),
			Stdout: os.Stdout, Stderr: os.Stderr,
		}},
		Lease: lease, LeaseGrace: 100 * time.Millisecond, FrozenLimit: frozen, Linger: true,
	})
	fmt.Println("returned", results[0].Err, err)
	tasks[0].Exit(0, 0)
	<-tasks[0].Lost()
	tasks[0].Close()
})

const leaseTime = 2 * time.Second

// startPair starts an agent and its task, whose tree is complete.
func startPair(t *testing.T, change ...func(*exec.Cmd)) (agent, task *process) {
	t.Helper()
	nothingLeft(t)
	agent = start(t, anAgent, address(t), change...)
	agent.stdout.want("bound")
	task = start(t, aTask, address(t))
	task.stdout.want("ready")
	return agent, task
}

func withFrozenLimit(d time.Duration) func(*exec.Cmd) {
	return func(c *exec.Cmd) { c.Env = append(c.Env, limitEnv+"="+d.String()) }
}

// tree are the processes of the test but these.
func tree(t *testing.T, others ...*process) (pids []int) {
	for _, pid := range marked(t) {
		if !slices.ContainsFunc(others, func(p *process) bool { return p.Process.Pid == pid }) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// runnerOf is the runner of a task.
func runnerOf(t *testing.T, p *process) int {
	t.Helper()
	children, err := procfs.Children(procfs.System, p.Process.Pid)
	if err != nil || len(children) != 1 {
		t.Fatalf("children %v, %v, want a runner", children, err)
	}
	return children[0]
}

// TestAgentKilled: nothing of the tree is left, also if the task is stopped.
func TestAgentKilled(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		t.Run(fmt.Sprintf("task stopped %t", stopped), func(t *testing.T) {
			agent, task := startPair(t)
			if stopped {
				task.signal(syscall.SIGSTOP)
				eventually(t, "it is stopped", func() bool { return state(task.Process.Pid) == 'T' })
			}
			agent.signal(syscall.SIGKILL)
			eventually(t, "the tree is gone", func() bool { return len(tree(t, task)) == 0 })
			if stopped {
				task.signal(syscall.SIGCONT)
			}
			if code := task.code(); code != CodeLost {
				t.Errorf("the task exits with %d, want %d", code, CodeLost)
			}
			task.stdout.want(ErrAgent.Error())
		})
	}
}

// TestKilledAtAnyMoment: an agent, or a task, is killed while the tree is being started.
func TestKilledAtAnyMoment(t *testing.T) {
	for i := range 20 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			nothingLeft(t)
			agent := start(t, anAgent, address(t))
			agent.stdout.want("bound")
			task := start(t, aTask, address(t))
			victim := task
			if i%2 == 0 {
				victim = agent
			}
			time.Sleep(time.Duration(i) * 3 * time.Millisecond)
			victim.signal(syscall.SIGKILL)
			if victim == agent {
				task.code()
			}
			eventually(t, "the tree is gone", func() bool { return len(tree(t, task, agent)) == 0 })
		})
	}
}

// TestTaskKilled: the task, or its runner, is killed: Run returns when nothing of the tree is left. A
// task starts another runner.
func TestTaskKilled(t *testing.T) {
	for _, victim := range []string{"task", "runner"} {
		t.Run(victim, func(t *testing.T) { testTaskKilled(t, victim) })
	}
}

func testTaskKilled(t *testing.T, victim string) {
	p, task := oneTask(t)
	started, lost := make(chan bool, 1), make(chan wrap.Result, 1)
	done, _ := begin(t, task, wrap.Tree{
		Workers: []wrap.Worker{sh(t, resistant)}, Grace: time.Hour,
		Started: func(int, int) { started <- true },
		Ended:   func(_ int, r wrap.Result) { lost <- r },
	})
	p.stdout.want("ready")
	await(t, "Started", started) // so that the agent knows the worker
	if victim == "task" {
		p.signal(syscall.SIGKILL)
	} else {
		syscall.Kill(runnerOf(t, p), syscall.SIGKILL)
	}
	o := await(t, "Run", done)
	if left := tree(t, p); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	r := await(t, "Ended", lost)
	if died := task.HasDied(); died != (victim == "task") {
		t.Errorf("the task has died: %t", died)
	}
	if o.err != wrap.ErrRunner || r.Err != wrap.ErrRunner || !r.Stopped || r.PID == 0 {
		t.Errorf("Run = %+v, %v", o.results, o.err)
	}
	if victim == "runner" {
		results, err := runIn(task, t.Context(), wrap.Tree{Workers: []wrap.Worker{sh(t, "exit 2")}})
		if err != nil || results[0].Code != 2 {
			t.Errorf("Run in another runner = %+v, %v", results, err)
		}
		return
	}
	await(t, "Lost", task.Lost())
	if _, err := runIn(task, t.Context(), wrap.Tree{Workers: []wrap.Worker{sh(t, "")}}); err != wrap.ErrRunner {
		t.Errorf("another Run: %v", err)
	}
	if _, err := task.ReadFile("/proc/self/stat"); err != wrap.ErrRunner {
		t.Errorf("ReadFile: %v", err)
	}
}

// TestTaskFrozen: a task that is stopped for too long is killed by its runner, and a runner by its
// task.
func TestTaskFrozen(t *testing.T) {
	for name, stop := range map[string]func(*testing.T, *process){
		"task":   func(_ *testing.T, p *process) { p.signal(syscall.SIGSTOP) },
		"runner": func(t *testing.T, p *process) { syscall.Kill(runnerOf(t, p), syscall.SIGSTOP) },
	} {
		t.Run(name, func(t *testing.T) {
			p, task := oneTask(t)
			done, _ := begin(t, task, wrap.Tree{
				Workers: []wrap.Worker{sh(t, resistant)}, FrozenLimit: time.Second,
			})
			p.stdout.want("ready")
			stop(t, p)
			if o := await(t, "Run", done); o.err != wrap.ErrRunner {
				t.Errorf("Run = %+v, %v", o.results, o.err)
			}
			if left := tree(t, p); len(left) > 0 {
				t.Errorf("processes left: %v", left)
			}
		})
	}
}

// TestAgentFrozen: an agent that is stopped does not renew the lease: the tree ends.
func TestAgentFrozen(t *testing.T) {
	agent, task := startPair(t)
	agent.signal(syscall.SIGSTOP)
	eventually(t, "the tree is gone", func() bool { return len(tree(t, agent, task)) == 0 })
	agent.signal(syscall.SIGCONT)
	agent.stdout.want("returned " + wrap.ErrLeaseOver.Error() + " <nil>")
	if code := task.code(); code != 0 {
		t.Errorf("the task exits with %d", code)
	}
}

// TestAgentFrozenTooLong: the runner of a task kills an agent that is stopped for FrozenLimit.
func TestAgentFrozenTooLong(t *testing.T) {
	agent, task := startPair(t, withFrozenLimit(time.Second))
	agent.signal(syscall.SIGSTOP)
	if code := task.code(); code != CodeLost {
		t.Errorf("the task exits with %d, want %d", code, CodeLost)
	}
	<-agent.ended
	if s := agent.ProcessState.String(); !strings.Contains(s, "killed") {
		t.Errorf("the agent: %s", s)
	}
}

// TestFrozenWithoutWorkers: what is said about agents and tasks that are stopped holds as well when
// workers have ended and descendants of them run.
func TestFrozenWithoutWorkers(t *testing.T) {
	script := func(c *exec.Cmd) { c.Env = append(c.Env, scriptEnv+"="+leavesResistant) }
	t.Run("agent and task, lease over", func(t *testing.T) {
		agent, task := startPair(t, script)
		task.signal(syscall.SIGSTOP)
		agent.signal(syscall.SIGSTOP)
		eventually(t, "the tree is gone", func() bool { return len(tree(t, agent, task)) == 0 })
	})
	t.Run("agent, for too long", func(t *testing.T) {
		agent, task := startPair(t, script, withFrozenLimit(time.Second))
		agent.signal(syscall.SIGSTOP)
		if code := task.code(); code != CodeLost {
			t.Errorf("the task exits with %d, want %d", code, CodeLost)
		}
		<-agent.ended
	})
}

// TestBothFrozen: agent, task, runner and workers are stopped until the lease is over. When they
// are continued the workers are stopped at once, and run on when the lease has been renewed.
func TestBothFrozen(t *testing.T) {
	agent, task := startPair(t)
	time.Sleep(leaseTime / 4) // a process without a lease does not notice that it is stopped
	workers := tree(t, agent, task)
	all := append([]int{agent.Process.Pid, runnerOf(t, task), task.Process.Pid}, workers...)
	for _, pid := range all {
		syscall.Kill(pid, syscall.SIGSTOP)
	}
	time.Sleep(leaseTime + 700*time.Millisecond)
	for _, pid := range slices.Backward(all[1:]) { // the workers first: the runner stops them again
		syscall.Kill(pid, syscall.SIGCONT)
	}
	in := func(want bool) func() bool {
		return func() bool {
			return !slices.ContainsFunc(tree(t, agent, task), func(pid int) bool {
				s := state(pid)
				stopped := s == 'T' || s == 'D' // D: after vfork, until the stopped child executes
				return stopped != want
			})
		}
	}
	eventually(t, "the tree is stopped", in(true))
	agent.signal(syscall.SIGCONT)
	eventually(t, "the tree runs", in(false))
	if n := len(tree(t, agent, task)); n < 4 {
		t.Errorf("%d processes are left of the tree", n)
	}
	agent.signal(syscall.SIGKILL)
}
