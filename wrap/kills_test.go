package wrap

import (
	"flag"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
	"rdzv/internal/proctest"
	"rdzv/wrap/internal/parent"
)

// kills is how many trees TestKills kills; make kills uses more.
var kills = flag.Int("kills", 5, "number of trees that TestKills kills")

// TestKills kills processes of trees at random moments from the start of the agent on: nothing is
// left. The workers ignore SIGTERM, fork twice and create sessions.
func TestKills(t *testing.T) {
	// What would survive is then a child of this process, whatever its session and its environment.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	var killed proctest.Kills
	for n := range *kills {
		t.Run(strconv.Itoa(n), func(t *testing.T) { killSome(t, &killed) })
	}
	t.Logf("%d trees, %d SIGKILLs\n%v", *kills, killed.Sum(), &killed)
}

// killSome starts a tree, and kills some of its processes.
func killSome(t *testing.T, killed *proctest.Kills) {
	nothingLeft(t)
	const most = 300 * time.Millisecond // by then all processes run, mostly
	cmd, _ := startAgent(t, 0, func(c *exec.Cmd) { c.Env[2] = argEnv + "=2" })
	agent := cmd.Process.Pid
	names := []string{
		"agent", "runner", "worker and agent", "worker and runner", "children of the runner and agent",
	}
	kind := rand.IntN(len(names))
	if kind > 0 {
		eventually(t, "a worker runs", func() bool { return len(childrenOf(childNamed(agent))) > 0 })
	}
	time.Sleep(rand.N(most))
	runner := childNamed(agent)
	workers := childrenOf(runner)
	if len(workers) == 0 { // the tree is being started
		kind = 0
	}
	worker := workers[:min(1, len(workers))]
	pids := [][]int{
		{agent}, {runner}, append(slices.Clone(worker), agent), append(slices.Clone(worker), runner),
		append(workers, agent),
	}[kind]
	n := 0
	for _, pid := range pids {
		if !dead(pid) && syscall.Kill(pid, syscall.SIGKILL) == nil {
			n++
		}
	}
	killed.Add(names[kind], len(pids), n)
	if kind == 1 || kind == 3 {
		eventually(t, "the agent has ended", func() bool { return dead(agent) })
	}
	cmd.Process.Kill()
	cmd.Wait()
	eventually(t, "nothing is left after "+names[kind], func() bool {
		reapAdopted()
		return len(marked(marker(t))) == 0
	})
}

func childrenOf(pid int) []int {
	if pid == 0 {
		return nil
	}
	pids, _ := procfs.Children(procfs.System, pid)
	return pids
}

// childNamed is the runner of an agent, 0 if there is none yet.
func childNamed(agent int) int {
	for _, pid := range childrenOf(agent) {
		if named([]int{pid})[0].Name == parent.Name {
			return pid
		}
	}
	return 0
}
