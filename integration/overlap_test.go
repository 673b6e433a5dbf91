package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/procfs"
)

// An overlapCase is how an agent is lost while its workers run.
type overlapCase struct {
	name   string
	cut    bool // its node is disconnected
	killed bool
	frozen func(agent, holder, worker int) []int // these processes are stopped
}

var overlapCases = []overlapCase{
	{"cut", true, false, func(_, _, _ int) []int { return nil }},
	{"agent killed", false, true, func(_, _, _ int) []int { return nil }},
	{"agent stopped", false, false, func(agent, _, _ int) []int { return []int{agent} }},
	{"all stopped", false, false, func(agent, _, _ int) []int { return treeOf(agent) }},
	{"all stopped, continued in reverse", false, false, func(agent, _, _ int) []int {
		all := treeOf(agent)
		slices.Reverse(all)
		return all
	}},
}

// treeOf are a process and its descendants.
func treeOf(pid int) []int {
	all := []int{pid}
	children, _ := procfs.Children(procfs.System, pid)
	for _, child := range children {
		all = append(all, treeOf(child)...)
	}
	return all
}

// No worker of an attempt runs when one of the next attempt starts, although the workers save for
// longer than --peer-timeout leaves them, and have descendants in other sessions: on a node that does
// not host the store. What is continued later may run until its holder does.
func TestAttemptsDoNotOverlap(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4)
	for _, o := range overlapCases {
		t.Run(o.name, func(t *testing.T) { c.overlap(t, o, nil, []int{1, 2, 3, 4}, 1, 3*time.Second) })
	}
}

// The same on rank 0's node, with an etcd cluster on others.
func TestAttemptsDoNotOverlapInEtcd(t *testing.T) {
	t.Parallel()
	e := startEtcd(t, 4, etcdOptions{program: distributionEtcd(t)})
	const timeout = 5 * time.Second
	flags := append(e.flags(), "--peer-timeout", timeout.String())
	for _, o := range overlapCases {
		t.Run(o.name, func(t *testing.T) { e.overlap(t, o, flags, e.agentHosts, 0, timeout) })
	}
}

// overlap runs a job of two nodes and a spare on the first three of these hosts, and loses the
// agent on the one with the index victim.
func (c *cluster) overlap(
	t *testing.T, o overlapCase, flags []string, hosts []int, victim int, timeout time.Duration,
) {
	j := c.replacedJob(t, 0, append([]string{
		"--nodes", "2", "--spares", "1", "--grace", "20s", "--store", "node" + strconv.Itoa(hosts[0]),
	}, flags...)...)
	dir := j.dir("job")
	j.program = []string{self, "saver", dir, "node" + strconv.Itoa(hosts[victim])}
	nodes := []string{}
	for i := range 3 {
		j.startAgent(hosts[i], "--node-rank", strconv.Itoa(i))
		nodes = append(nodes, "node"+strconv.Itoa(hosts[i]))
	}
	workers := j.ranks(0, nodes[:2]...)
	worker := workers[2*victim]
	holder := parentOf(worker)
	agent := agentAbove(worker)
	stopped := o.frozen(agent, holder, worker)
	for _, pid := range stopped {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	lost := clock()
	if o.killed {
		kill(agent)
	}
	if o.cut {
		c.hosts("cut", strconv.Itoa(hosts[victim]))
	}
	moved := slices.Clone(nodes[:2])
	moved[victim] = nodes[2]
	j.ranks(1, moved...)
	if len(stopped) > 1 {
		j.runs(time.Second)
	}
	continued := clock()
	for _, pid := range stopped {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	continueSudo(t, parentOf(agent))
	delay := time.Duration(0)
	if len(stopped) > 1 {
		delay = clock() - continued
	}
	gone := func() bool { return len(treeOf(agent)) == 1 && stateOf(agent) == "X" }
	if !eventually(waitLimit, gone) {
		t.Errorf("the agent that is lost has not ended: %v", treeOf(agent))
	}
	if o.cut {
		c.hosts("heal", strconv.Itoa(hosts[victim]))
		const line = "waiting up to 4s for ranks " // not --grace
		if a := j.agents[hosts[victim]]; len(a.linesWith(line)) != 1 {
			t.Errorf("the agent that is lost printed %q, want %q", a.linesWith("waiting"), line)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "finish"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	delete(j.agents, hosts[victim])
	for _, a := range j.agents {
		a.checkCode(0)
	}
	old, next := readBeats(t, dir, 0), readBeats(t, dir, 1)
	if len(old) == 0 || len(next) == 0 {
		t.Fatalf("%d and %d beats of two attempts", len(old), len(next))
	}
	starts := next[0]
	t.Logf("attempt 1 started %v after the loss (--peer-timeout %v), %v after the last worker of attempt 0 had ended",
		starts-lost, timeout, starts-old.before(continued))
	if end := old.before(continued); end > starts {
		t.Errorf("workers of attempt 0 ran for %v beside those of attempt 1", end-starts)
	}
	if late := old[len(old)-1] - continued; late > delay+time.Second {
		t.Errorf("continued processes of attempt 0 ran for %v beside attempt 1", late)
	} else if late > 0 {
		t.Logf("continued processes of attempt 0 ran for %v, SIGCONT to all took %v", late, delay)
	}
	if later := starts - lost; later > timeout+5*time.Second+busyMargin {
		t.Errorf("attempt 1 started %v after the loss, want at most %v", later, timeout+5*time.Second)
	}
}

// runs fails the test if an agent ends within the time.
func (j *replacedJob) runs(d time.Duration) {
	j.t.Helper()
	deadline := time.Now().Add(d)
	for _, a := range j.agents {
		a.runsUntil(deadline)
	}
}
