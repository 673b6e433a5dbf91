package wrap

import (
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
	"rdzv/wrap/internal/parent"
)

// leaseEnv and frozenEnv are how long the lease of a lingeringAgent lasts after each renewal, and
// its Tree.FrozenLimit.
const (
	leaseEnv  = "WRAP_TEST_LEASE"
	frozenEnv = "WRAP_TEST_FROZEN_LIMIT"
)

// lingeringAgent is an agent of one shell script that renews its lease as long as it runs, and whose
// descendants go on when the script has ended.
var lingeringAgent = role("lingering agent", func() {
	lease := &Lease{}
	duration, _ := time.ParseDuration(os.Getenv(leaseEnv))
	frozen, _ := time.ParseDuration(os.Getenv(frozenEnv))
	go func() {
		for tick := time.Tick(duration / 20); ; <-tick {
			lease.Renew(boottime.Now() + duration)
		}
	}()
	_, err := Run(context.Background(), Tree{
		Workers: []Worker{{
			Path: "/bin/sh", Args: []string{"sh", "-c", os.Getenv(argEnv)}, Env: os.Environ(),
			Stdout: os.Stdout,
		}},
		Ended:  func(int, Result) { fmt.Println("ended") },
		Linger: true, Lease: lease, LeaseGrace: time.Second, FrozenLimit: frozen,
		Source: Signals(syscall.SIGTERM),
	})
	fmt.Println("returned", err)
})

func startLingering(t *testing.T, script string, lease, frozen time.Duration) (int, lineReader) {
	t.Helper()
	cmd, out := startAgent(t, 0, func(c *exec.Cmd) {
		c.Env = append(c.Env, roleEnv+"="+lingeringAgent, argEnv+"="+script,
			leaseEnv+"="+lease.String(), frozenEnv+"="+frozen.String())
	})
	return cmd.Process.Pid, out
}

// Scripts that end before a descendant does. The first two do so at once, the last at SIGTERM.
const (
	leavesResistant = `sh -c 'trap "" TERM; echo ready; while :; do sleep 0.05; done' & exit 0`
	leavesSaving    = `sh -c 'trap "sleep 0.2; echo saved; exit" TERM; echo ready
		trap "echo is not terminated" USR1; while :; do sleep 0.05; done' & exit 0`
	diesBefore = `sh -c 'trap "" TERM; echo ready; while :; do sleep 0.05; done'; exit 1`
)

// TestFrozenAgentOfOrphans: an agent is stopped alone. Its lease and the limit of that hold for the
// descendants that workers have left, as for workers.
func TestFrozenAgentOfOrphans(t *testing.T) {
	const short = 500 * time.Millisecond
	for _, c := range []struct {
		name, script  string
		lease, frozen time.Duration
		want          string // what a descendant prints
	}{
		{"lease over, worker had ended", leavesResistant, short, 0, ""},
		{"lease over, descendant saves", leavesSaving, short, 0, "saved"},
		{"lease over, worker dies before", diesBefore, short, 0, ""},
		{"lease over before the limit", leavesResistant, short, time.Hour, ""},
		{"lease over before the limit, all die of SIGTERM", leavesSaving, short, time.Hour, "saved"},
		{"frozen for too long", leavesResistant, time.Hour, short, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			nothingLeft(t)
			agent, out := startLingering(t, c.script, c.lease, c.frozen)
			if c.script == diesBefore {
				out.want("ready")
			} else {
				out.inAnyOrder("ready", "ended")
			}
			syscall.Kill(agent, syscall.SIGSTOP)
			if c.want != "" {
				out.want(c.want)
			}
			eventually(t, "the tree has ended", func() bool {
				isAgent := func(p Process) bool { return p.PID == agent && c.frozen == 0 }
				return len(slices.DeleteFunc(marked(marker(t)), isAgent)) == 0
			})
		})
	}
}

// TestFrozenWithOrphans: an agent is stopped together with what its worker has left, longer than the
// lease and the limit for an agent that is stopped alone. Both go on when they are continued.
func TestFrozenWithOrphans(t *testing.T) {
	nothingLeft(t)
	agent, out := startLingering(t, leavesSaving, leaseTime, time.Second)
	out.inAnyOrder("ready", "ended")
	// The loop runs sleep again and again. The agent is stopped last: it may not be stopped alone for
	// longer than the limit.
	var all []int
	eventually(t, "the descendants are stopped", func() bool {
		run := false
		for _, p := range marked(marker(t)) {
			if p.PID != agent && p.Name != parent.Name && !procfs.IsStopped(procfs.System, p.PID) {
				syscall.Kill(p.PID, syscall.SIGSTOP)
				all, run = append(all, p.PID), true
			}
		}
		return !run && len(all) > 0
	})
	syscall.Kill(agent, syscall.SIGSTOP)
	time.Sleep(stopTime + time.Second) // the grace after the lease
	for _, pid := range append(all, agent) {
		syscall.Kill(pid, syscall.SIGCONT)
	}
	eventually(t, "the descendants run", func() bool {
		return !slices.ContainsFunc(all, func(pid int) bool { return procfs.IsStopped(procfs.System, pid) })
	})
	for _, pid := range all {
		syscall.Kill(pid, syscall.SIGUSR1)
	}
	out.want("is not terminated")
	syscall.Kill(agent, syscall.SIGKILL)
}
