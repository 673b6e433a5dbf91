package integration

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/procfs"
)

// An overlapCase is how an agent is lost, or leaves, while its workers run or what they have left.
type overlapCase struct {
	name    string
	bash    bool                  // bash runs each worker, and dies of SIGTERM while that saves a snapshot
	ended   bool                  // each worker is what a program has left that has succeeded
	elastic bool                  // the job goes on with fewer nodes; otherwise it has a spare
	flags   []string              // more of them
	cut     bool                  // its node is disconnected
	stopped func(agent int) []int // these processes are stopped until the next attempt has started
	lose    func(j *overlapJob)   // what happens then
	says    string                // what each other agent prints
	limit   time.Duration         // within which the next attempt starts, if that depends on the case
	codes   []int                 // of the agent: one of these
}

// overlapsAtOnce is how many of them run at the same time in a test. Each has tens of processes that
// show that they run: with more of them, agents were taken for lost that were only late.
const overlapsAtOnce = 2

// overlapCases are those with any store.
var overlapCases = []overlapCase{
	{name: "cut", cut: true, codes: []int{123}},
	{name: "agent stopped", stopped: agentAlone, codes: stoppedCodes},
	{name: "all stopped", stopped: treeOf, codes: stoppedCodes},
	{name: "all stopped, continued in reverse", stopped: treeInReverse, codes: stoppedCodes},
	{
		name: "SIGTERM, the workers have ended", ended: true, elastic: true,
		lose: (*overlapJob).terminateAgent, says: leavesJob, limit: leaveLimit, codes: []int{128 + 15},
	},
}

// leaseCases are more of those where an agent has a lease, hostedCases where an agent hosts the store
// and sees how the connections of the others end.
var (
	leaseCases  = []overlapCase{{name: "agent killed", lose: (*overlapJob).killAgent, codes: []int{128 + 9}}}
	hostedCases = []overlapCase{
		{
			name: "cut, another host gets the address", flags: resetTimeout, cut: true,
			lose: (*overlapJob).moveAddress, says: disconnected, limit: resetLimit, codes: []int{123},
		},
		{
			name: "cut, the store's kernel ends the connection", flags: resetTimeout, cut: true,
			lose: (*overlapJob).endConnection, says: disconnected, limit: resetLimit, codes: []int{123},
		},
		{
			name: "agent killed", flags: longTimeout, lose: (*overlapJob).killAgent, says: disconnected,
			limit: endLimit, codes: []int{128 + 9},
		},
		{name: "agent stopped, bash runs the worker", bash: true, stopped: agentAlone, codes: stoppedCodes},
		{
			name: "agent stopped, the workers have ended", ended: true, stopped: agentAlone,
			lose: (*overlapJob).killFirstRank, codes: stoppedCodes,
		},
		{
			name: "SIGTERM, bash runs the worker", bash: true, lose: (*overlapJob).terminateAgent,
			says: leavesJob, limit: leaveLimit, codes: []int{128 + 15},
		},
		{
			name: "SIGTERM, bash runs the worker, elastic", bash: true, elastic: true,
			lose: (*overlapJob).terminateAgent, says: leavesJob, limit: leaveLimit, codes: []int{128 + 15},
		},
	}
)

const (
	disconnected = "it disconnected unexpectedly"
	leavesJob    = " leaves the job: received SIGTERM"
)

// stoppedCodes are those of an agent that ends when it is continued, unless its runner has killed it.
var stoppedCodes = []int{123, 128 + 9}

var (
	// resetTimeout is much longer than it takes to end a connection.
	resetTimeout = []string{"--peer-timeout", "10s"}
	longTimeout  = []string{"--peer-timeout", "30s"}
)

// The next attempt starts within these times after the loss.
const (
	// agentLimit is for how long after the peer timeout processes of an agent may run that takes
	// itself for lost, 4 s, and 1 s for which the others wait in addition.
	agentLimit = 5 * time.Second
	// resetLimit is for an agent that may have been answered just before its connection ended, which
	// it does within resetTimeout.
	resetLimit = 2*10*time.Second + agentLimit
	// endLimit is for one whose connection ends when none of its processes is left. It is less than
	// longTimeout, with busyMargin too.
	endLimit = 10 * time.Second
	// leaveLimit is for one that leaves: its processes save a snapshot.
	leaveLimit = saveTime + 2*time.Second
)

func agentAlone(agent int) []int { return []int{agent} }

// treeOf are a process and its descendants.
func treeOf(pid int) []int {
	all := []int{pid}
	children, _ := procfs.Children(procfs.System, pid)
	for _, child := range children {
		all = append(all, treeOf(child)...)
	}
	return all
}

func treeInReverse(pid int) []int {
	all := treeOf(pid)
	slices.Reverse(all)
	return all
}

// An overlapJob is a job of which a node loses its agent.
type overlapJob struct {
	*replacedJob
	hosts   []int    // of two nodes, and of the spare or a third node
	victim  int      // index of the node
	lost    *process // its agent, which is none of agents
	workers []int
}

func (j *overlapJob) host() string    { return strconv.Itoa(j.hosts[j.victim]) }
func (j *overlapJob) address() string { return "10.77.0." + strconv.Itoa(10+j.hosts[j.victim]) }

func (j *overlapJob) killAgent()      { kill(j.lost.pid()) }
func (j *overlapJob) terminateAgent() { j.lost.signal(syscall.SIGTERM) }

// killFirstRank ends the attempt, which the loss of an agent whose workers have succeeded does not.
func (j *overlapJob) killFirstRank() {
	j.runs(overlapTimeout + time.Second)
	kill(j.workers[0])
}

// addressHost is a host of no job.
const addressHost = 4

// moveAddress gives the address of the node to another host, which resets connections that it does
// not know.
func (j *overlapJob) moveAddress() {
	j.cluster.hosts("alias", strconv.Itoa(addressHost), j.address())
	j.t.Cleanup(func() {
		j.root(addressHost, "ip", "addr", "del", j.address()+"/24", "dev", "eth0")
		j.root(j.hosts[0], "ip", "neigh", "flush", "all")
	})
	j.root(j.hosts[0], "ip", "neigh", "flush", "all")
}

// endConnection lets the kernel of the store's host end the connections to the node.
func (j *overlapJob) endConnection() { j.root(j.hosts[0], "ss", "-K", "dst", j.address()) }

// root runs a command on a host as root.
func (j *overlapJob) root(host int, argv ...string) {
	j.t.Helper()
	line := asRootOnHost(j.cluster.on(host, argv...))
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		j.t.Errorf("%q: %v\n%s", argv, err, out)
	}
}

// overlapTimeout is --peer-timeout of most jobs without an etcd cluster.
const overlapTimeout = 3 * time.Second

// No process of an attempt runs when one of the next attempt starts, although the workers save for
// longer than --peer-timeout leaves them, and have descendants in other sessions: on a node that does
// not host the store. What is continued later may run until its runner does.
func TestAttemptsDoNotOverlap(t *testing.T) {
	t.Parallel()
	flags := []string{"--peer-timeout", overlapTimeout.String()}
	cases := slices.Concat(hostedCases, overlapCases) // the longest first
	hosts := addressHost
	for _, o := range cases {
		if o.cut {
			hosts++
		}
	}
	c := newCluster(t, hosts)
	c.startSlurm(1, 3)
	var scenarios []scenario
	for _, o := range cases {
		on := []int{1, 2, 3}
		if o.cut { // it has this host for itself
			on[1] = hosts
			hosts--
		}
		o.limit = cmp.Or(o.limit, overlapTimeout+agentLimit)
		scenarios = append(scenarios, scenario{o.name, func(t *testing.T) { c.overlap(t, o, flags, on, 1) }})
	}
	scenarios = append(scenarios, scenario{"agent of two tasks killed", c.overlapInSrun})
	runAtOnce(t, overlapsAtOnce, scenarios)
}

// The same on rank 0's node, with an etcd cluster on others. The end of an agent's lease proves
// nothing, because a cluster may have revoked it early: the others wait for the peer timeout again.
func TestAttemptsDoNotOverlapInEtcd(t *testing.T) {
	t.Parallel()
	e := startEtcd(t, 4, etcdOptions{program: distributionEtcd(t)})
	const timeout = 5 * time.Second
	flags := append(e.flags(), "--peer-timeout", timeout.String())
	var scenarios []scenario
	for _, o := range slices.Concat(overlapCases, leaseCases) {
		on := slices.Clone(e.agentHosts[:3])
		if o.cut {
			on[0] = e.agentHosts[3]
		}
		o.limit = cmp.Or(o.limit, 2*timeout+agentLimit)
		scenarios = append(scenarios, scenario{o.name, func(t *testing.T) { e.overlap(t, o, flags, on, 0) }})
	}
	runAtOnce(t, overlapsAtOnce, scenarios)
}

// overlap runs a job on these hosts, and loses the agent on the one with the index victim.
func (c *cluster) overlap(t *testing.T, o overlapCase, flags []string, hosts []int, victim int) {
	j := c.overlapJob(t, o, flags, hosts, victim)
	agent := j.lost.pid()
	var stopped []int
	if o.stopped != nil {
		stopped = o.stopped(agent)
	}
	for _, pid := range stopped {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	if o.cut {
		t.Cleanup(func() { c.hosts("heal", j.host()) })
		c.hosts("cut", j.host())
	}
	b := overlapTimes{lost: clock()}
	if o.lose != nil {
		o.lose(j)
	}
	j.ranks(1, j.nodesAfter(o)...)
	if stopped != nil {
		j.runs(time.Second)
		b.goOn(t, agent, stopped)
	}
	if code := j.lost.code(); !slices.Contains(o.codes, code) {
		t.Errorf("the agent that is lost ended with exit code %d, want one of %v", code, o.codes)
	}
	const line = "waiting up to 4s for ranks " // not --grace
	if o.cut && len(j.lost.linesWith(line)) != 1 {
		t.Errorf("the agent that is lost printed %q, want %q", j.lost.linesWith("waiting"), line)
	}
	j.finish()
	for _, a := range j.agents {
		a.checkCode(0)
		if len(a.linesWith(o.says)) == 0 {
			t.Errorf("an agent printed %q, want %q", a.linesWith("rdzv: "), o.says)
		}
	}
	b.check(t, j.dir("job"), o.limit)
}

// overlapJob starts the job, and waits until its workers run.
func (c *cluster) overlapJob(
	t *testing.T, o overlapCase, flags []string, hosts []int, victim int,
) *overlapJob {
	nodes := []string{"--nodes", "2", "--spares", "1"}
	if o.elastic {
		nodes = []string{"--nodes", "2:3", "--last-call", "1s"}
	}
	first := "node" + strconv.Itoa(hosts[0])
	j := &overlapJob{hosts: hosts, victim: victim, replacedJob: c.replacedJob(t, 0,
		slices.Concat(nodes, []string{"--grace", "20s", "--store", first}, flags, o.flags)...)}
	j.program = []string{self, "saver", j.dir("job"), "node" + j.host()}
	switch {
	case o.bash:
		j.program = append([]string{"bash", "-c", `"$@"; echo done`, "bash"}, j.program...)
	case o.ended:
		const leave = `[ "$RDZV_ATTEMPT $(hostname)" = "0 $4" ] || exec "$@"
			"$@" &
			until [ -e "$3/0/$RANK" ]; do sleep 0.01; done`
		j.program = append([]string{"sh", "-c", leave, "sh"}, j.program...)
	}
	for i, host := range hosts {
		j.startAgent(host, "--node-rank", strconv.Itoa(i))
	}
	j.lost = j.agents[hosts[victim]]
	delete(j.agents, hosts[victim])
	names := j.nodes()
	if !o.elastic {
		names = names[:2]
	}
	j.workers = j.ranks(0, names...)
	for _, worker := range j.workers[2*victim : 2*victim+2] {
		adopted := func() bool { return agentAbove(worker) == j.lost.pid() }
		if o.ended && !eventually(waitLimit, adopted) {
			t.Fatalf("the program that has started process %d has not ended", worker)
		}
	}
	return j
}

// nodes are the names of the hosts, nodesAfter those of the next attempt.
func (j *overlapJob) nodes() (names []string) {
	for _, host := range j.hosts {
		names = append(names, "node"+strconv.Itoa(host))
	}
	return names
}

func (j *overlapJob) nodesAfter(o overlapCase) []string {
	nodes := j.nodes()
	if o.elastic {
		return slices.Delete(nodes, j.victim, j.victim+1)
	}
	nodes[j.victim] = nodes[2]
	return nodes[:2]
}

// overlapInSrun kills an agent with two tasks, whose connection to the store both hold open.
func (c *cluster) overlapInSrun(t *testing.T) {
	flags := slices.Concat([]string{"--spares", "1", "--grace", "20s"}, longTimeout)
	j, srun := c.srunProgram(t, 2, flags, func(dir string) []string {
		return []string{self, "saver", dir, "node2"}
	})
	agent := agentAbove(j.ranks(0, "node1", "node2")[2])
	b := overlapTimes{lost: clock()}
	kill(agent)
	j.ranks(1, "node1", "node3")
	j.finish()
	srun.checkCode(128 + 9)
	b.check(t, j.dir("job"), endLimit)
}

// finish lets the workers end.
func (j *replacedJob) finish() {
	j.t.Helper()
	if err := os.WriteFile(filepath.Join(j.dir("job"), "finish"), nil, 0o600); err != nil {
		j.t.Fatal(err)
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

// overlapTimes are when an agent was lost and, if processes were stopped, when these were continued
// and how long that took.
type overlapTimes struct{ lost, continued, delay time.Duration }

// goOn continues an agent, alone or with all of its tree.
func (b *overlapTimes) goOn(t *testing.T, agent int, stopped []int) {
	alone := len(stopped) == 1
	b.continued = clock()
	for _, pid := range treeOf(agent) {
		if alone && !isRdzv(pid) && stateOf(pid) != "X" {
			t.Errorf("process %d of an agent that is stopped runs: %q", pid, commandLine(pid))
		}
	}
	for _, pid := range stopped {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	continueSudo(t, parentOf(agent))
	if !alone {
		b.delay = clock() - b.continued
	}
}

// check compares them with when the workers have run.
func (b *overlapTimes) check(t *testing.T, dir string, limit time.Duration) {
	t.Helper()
	old, next := readBeats(t, dir, 0), readBeats(t, dir, 1)
	if len(old) == 0 || len(next) == 0 {
		t.Fatalf("%d and %d beats of two attempts", len(old), len(next))
	}
	starts, end := next[0], old[len(old)-1]
	if b.continued != 0 {
		late := end - b.continued
		end = old.before(b.continued)
		if late > b.delay+time.Second {
			t.Errorf("continued processes of attempt 0 ran for %v beside attempt 1", late)
		} else if late > 0 {
			t.Logf("continued processes of attempt 0 ran for %v, SIGCONT to all took %v", late, b.delay)
		}
	}
	t.Logf("attempt 1 started %v after the loss, %v after the last worker of attempt 0 had ended",
		starts-b.lost, starts-end)
	if end > starts {
		t.Errorf("workers of attempt 0 ran for %v beside those of attempt 1", end-starts)
	}
	if later := starts - b.lost; later > limit+busyMargin {
		t.Errorf("attempt 1 started %v after the loss, want at most %v", later, limit)
	}
}
