package runner

import (
	"cmp"
	"context"
	"errors"
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
	limitEnv  = "RUNNER_TEST_FROZEN_LIMIT"
	scriptEnv = "RUNNER_TEST_SCRIPT"
)

// anAgent is the agent of one runner, in which it runs a script with a lease that it renews as long
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
	results, err := tasks[0].Run(context.Background(), wrap.Tree{
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

// startPair starts an agent and its runner, whose tree is complete.
func startPair(t *testing.T, change ...func(*exec.Cmd)) (agent, runner *process) {
	t.Helper()
	nothingLeft(t)
	agent = start(t, anAgent, address(t), change...)
	agent.stdout.want("bound")
	runner = start(t, aRunner, address(t))
	runner.stdout.want("ready")
	return agent, runner
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

// holderOf is the holder of a runner.
func holderOf(t *testing.T, p *process) int {
	t.Helper()
	children, err := procfs.Children(procfs.System, p.Process.Pid)
	if err != nil || len(children) != 1 {
		t.Fatalf("children %v, %v, want a holder", children, err)
	}
	return children[0]
}

// TestAgentKilled: nothing of the tree is left, also if the runner is stopped.
func TestAgentKilled(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		t.Run(fmt.Sprintf("runner stopped %t", stopped), func(t *testing.T) {
			agent, runner := startPair(t)
			if stopped {
				runner.signal(syscall.SIGSTOP)
				eventually(t, "it is stopped", func() bool { return state(runner.Process.Pid) == 'T' })
			}
			agent.signal(syscall.SIGKILL)
			eventually(t, "the tree is gone", func() bool { return len(tree(t, runner)) == 0 })
			if stopped {
				runner.signal(syscall.SIGCONT)
			}
			if code := runner.code(); code != CodeLost {
				t.Errorf("the runner exits with %d, want %d", code, CodeLost)
			}
			runner.stdout.want(ErrAgent.Error())
		})
	}
}

// TestKilledAtAnyMoment: an agent, or a runner, is killed while the tree is being started.
func TestKilledAtAnyMoment(t *testing.T) {
	for i := range 20 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			nothingLeft(t)
			agent := start(t, anAgent, address(t))
			agent.stdout.want("bound")
			runner := start(t, aRunner, address(t))
			victim := runner
			if i%2 == 0 {
				victim = agent
			}
			time.Sleep(time.Duration(i) * 3 * time.Millisecond)
			victim.signal(syscall.SIGKILL)
			if victim == agent {
				runner.code()
			}
			eventually(t, "the tree is gone", func() bool { return len(tree(t, runner, agent)) == 0 })
		})
	}
}

// TestRunnerKilled: Run returns when nothing of the tree is left.
func TestRunnerKilled(t *testing.T) {
	p, task := oneTask(t)
	lost := make(chan wrap.Result, 1)
	done, _ := begin(t, task, wrap.Tree{
		Workers: []wrap.Worker{sh(t, resistant)}, Grace: time.Hour,
		Ended: func(_ int, r wrap.Result) { lost <- r },
	})
	p.stdout.want("ready")
	p.signal(syscall.SIGKILL)
	o := await(t, "Run", done)
	if left := tree(t); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	r := await(t, "Ended", lost)
	if o.err != ErrLost || r.Err != ErrLost || !r.Stopped || r.PID == 0 || !errors.Is(r.Err, wrap.ErrHolder) {
		t.Errorf("Run = %+v, %v", o.results, o.err)
	}
	await(t, "Lost", task.Lost())
	if _, err := task.Run(t.Context(), wrap.Tree{Workers: []wrap.Worker{sh(t, "")}}); err != ErrLost {
		t.Errorf("another Run: %v", err)
	}
	if _, err := task.ReadFile("/proc/self/stat"); err != ErrLost {
		t.Errorf("ReadFile: %v", err)
	}
}

// TestHolderKilled: the runner kills the tree, and can run another one.
func TestHolderKilled(t *testing.T) {
	p, task := oneTask(t)
	done, _ := begin(t, task, wrap.Tree{Workers: []wrap.Worker{sh(t, resistant)}, Grace: time.Hour})
	p.stdout.want("ready")
	syscall.Kill(holderOf(t, p), syscall.SIGKILL)
	o := await(t, "Run", done)
	if o.err != wrap.ErrHolder || o.results[0].Err != wrap.ErrHolder {
		t.Errorf("Run = %+v, %v", o.results, o.err)
	}
	if left := tree(t, p); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	results, err := task.Run(t.Context(), wrap.Tree{Workers: []wrap.Worker{sh(t, "exit 2")}})
	if err != nil || results[0].Code != 2 {
		t.Errorf("another Run = %+v, %v", results, err)
	}
}

// TestRunnerFrozen: a runner that is stopped for too long is killed: by its holder, or by the agent
// when it is to end its tree.
func TestRunnerFrozen(t *testing.T) {
	for name, limit := range map[string]time.Duration{"by its holder": time.Second, "by its agent": 0} {
		t.Run(name, func(t *testing.T) {
			p, task := oneTask(t)
			kill := make(chan struct{})
			done, _ := begin(t, task, wrap.Tree{
				Workers: []wrap.Worker{sh(t, resistant)}, FrozenLimit: limit, Kill: kill,
			})
			p.stdout.want("ready")
			p.signal(syscall.SIGSTOP)
			if limit == 0 {
				close(kill)
			}
			if o := await(t, "Run", done); o.err != ErrLost {
				t.Errorf("Run = %+v, %v", o.results, o.err)
			}
			if left := tree(t); len(left) > 0 {
				t.Errorf("processes left: %v", left)
			}
		})
	}
}

// TestAgentFrozen: an agent that is stopped does not renew the lease: the tree ends.
func TestAgentFrozen(t *testing.T) {
	agent, runner := startPair(t)
	agent.signal(syscall.SIGSTOP)
	eventually(t, "the tree is gone", func() bool { return len(tree(t, agent, runner)) == 0 })
	agent.signal(syscall.SIGCONT)
	agent.stdout.want("returned " + wrap.ErrLeaseOver.Error() + " <nil>")
	if code := runner.code(); code != 0 {
		t.Errorf("the runner exits with %d", code)
	}
}

// TestAgentFrozenTooLong: the holder of a runner kills an agent that is stopped for FrozenLimit.
func TestAgentFrozenTooLong(t *testing.T) {
	agent, runner := startPair(t, withFrozenLimit(time.Second))
	agent.signal(syscall.SIGSTOP)
	if code := runner.code(); code != CodeLost {
		t.Errorf("the runner exits with %d, want %d", code, CodeLost)
	}
	<-agent.ended
	if s := agent.ProcessState.String(); !strings.Contains(s, "killed") {
		t.Errorf("the agent: %s", s)
	}
}

// TestFrozenWithoutWorkers: what is said about agents and runners that are stopped holds as well when
// workers have ended and descendants of them run.
func TestFrozenWithoutWorkers(t *testing.T) {
	script := func(c *exec.Cmd) { c.Env = append(c.Env, scriptEnv+"="+leavesResistant) }
	t.Run("agent and runner, lease over", func(t *testing.T) {
		agent, runner := startPair(t, script)
		runner.signal(syscall.SIGSTOP)
		agent.signal(syscall.SIGSTOP)
		eventually(t, "the tree is gone", func() bool { return len(tree(t, agent, runner)) == 0 })
	})
	t.Run("agent, for too long", func(t *testing.T) {
		agent, runner := startPair(t, script, withFrozenLimit(time.Second))
		agent.signal(syscall.SIGSTOP)
		if code := runner.code(); code != CodeLost {
			t.Errorf("the runner exits with %d, want %d", code, CodeLost)
		}
		<-agent.ended
	})
}

// TestBothFrozen: agent, runner, holder and workers are stopped until the lease is over. When they
// are continued the workers are stopped at once, and run on when the lease has been renewed.
func TestBothFrozen(t *testing.T) {
	agent, runner := startPair(t)
	time.Sleep(leaseTime / 4) // a process without a lease does not notice that it is stopped
	workers := tree(t, agent, runner)
	all := append([]int{agent.Process.Pid, holderOf(t, runner), runner.Process.Pid}, workers...)
	for _, pid := range all {
		syscall.Kill(pid, syscall.SIGSTOP)
	}
	time.Sleep(leaseTime + 700*time.Millisecond)
	for _, pid := range slices.Backward(all[1:]) { // the workers first: the holder stops them again
		syscall.Kill(pid, syscall.SIGCONT)
	}
	in := func(want bool) func() bool {
		return func() bool {
			return !slices.ContainsFunc(tree(t, agent, runner), func(pid int) bool {
				s := state(pid)
				stopped := s == 'T' || s == 'D' // D: after vfork, until the stopped child executes
				return stopped != want
			})
		}
	}
	eventually(t, "the tree is stopped", in(true))
	agent.signal(syscall.SIGCONT)
	eventually(t, "the tree runs", in(false))
	if n := len(tree(t, agent, runner)); n < 4 {
		t.Errorf("%d processes are left of the tree", n)
	}
	agent.signal(syscall.SIGKILL)
}
