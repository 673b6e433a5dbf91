package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The moments of the faults of TestChaosOfRestarts.
const (
	atStart = "as it starts"
	atWork  = "at work"
	between = "before the start"
)

// What a fault does to a job.
type faultEffect int

const (
	nothing faultEffect = iota
	restarts
	ends
)

// A need is what a fault requires of its job's setting.
type need int

const (
	anySetting need = iota
	aSpare
	aCluster // of etcd
	noSpare
	aLauncher
)

// A restartKind is a kind of fault of TestChaosOfRestarts.
type restartKind struct {
	name   string
	at     []string // of which one is drawn
	effect faultEffect
	code   int  // of the job, if this is its last fault
	light  bool // not in a job with torch, whose progress is not known
	kills  bool // an agent or a runner, so that files are left
	// moves: without a launcher agents that are lost are started again, and the job restarts, unless
	// the store is lost too.
	moves bool
	needs need
	cause func(r *restartJob)
}

var restartKinds = []restartKind{
	{name: "worker SIGKILL", at: []string{atWork}, effect: restarts, code: 128 + 9,
		cause: func(r *restartJob) { r.signalRanks(syscall.SIGKILL, r.random.IntN(r.ranks)) }},
	{name: "worker exits", at: []string{atWork}, effect: restarts, code: failCode,
		cause: func(r *restartJob) { r.signalRanks(syscall.SIGUSR1, r.random.IntN(r.ranks)) }},
	{name: "rank 0", at: []string{atWork}, effect: restarts, code: 128 + 9,
		cause: func(r *restartJob) { r.signalRanks(syscall.SIGKILL, 0) }},
	{name: "two workers", at: []string{atWork}, effect: restarts, code: 128 + 9,
		cause: func(r *restartJob) {
			order := r.random.Perm(r.ranks)
			r.signalRanks(syscall.SIGKILL, order[:2]...)
		}},
	{name: "starting worker", at: []string{atStart}, effect: restarts, code: 128 + 9,
		cause: (*restartJob).killStarting},
	{name: "fatal exit", at: []string{atWork}, effect: ends, code: 93,
		cause: func(r *restartJob) { r.signalRanks(syscall.SIGUSR2, r.random.IntN(r.ranks)) }},
	{name: "link 0.5 s", at: []string{atWork, between}, effect: nothing, light: true,
		cause: (*restartJob).cutBriefly},
	{name: "link", at: []string{atWork}, effect: ends, code: 123, kills: true, moves: true,
		cause: (*restartJob).cutForLong},
	{name: "agent pauses", at: []string{atWork}, effect: nothing, light: true,
		cause: func(r *restartJob) { r.stopFor(time.Second, r.agentOf(r.random.IntN(r.ranks))) }},
	{name: "runner pauses", at: []string{atWork}, effect: nothing, light: true,
		cause: func(r *restartJob) { r.stopFor(time.Second, r.runnerOf(r.random.IntN(r.ranks))) }},
	{name: "runner", at: []string{atWork}, effect: restarts, code: 123,
		cause: func(r *restartJob) { r.signal(r.runnerOf(r.random.IntN(r.ranks)), syscall.SIGKILL) }},
	{name: "agent", at: []string{atWork, between}, effect: ends, code: 123, kills: true, moves: true,
		cause: func(r *restartJob) { r.killAgent(r.hosts[r.current.host-1]) }},
	{name: "two agents", at: []string{atWork}, effect: ends, code: 123, kills: true, moves: true,
		needs: noSpare, cause: (*restartJob).killTwoAgents},
	{name: "task", at: []string{atWork}, effect: ends, code: 123, kills: true, needs: aLauncher,
		cause: func(r *restartJob) { r.signal(r.lastTask(), syscall.SIGKILL) }},
	{name: "task pauses", at: []string{atWork}, effect: nothing, light: true, needs: aLauncher,
		cause: func(r *restartJob) { r.stopFor(time.Second, r.lastTask()) }},
	{name: "spare", at: []string{atWork}, effect: nothing, light: true, kills: true, needs: aSpare,
		cause: (*restartJob).killSpare},
	{name: "job's leader", at: []string{atWork, between}, effect: ends, code: 123, kills: true,
		moves: true, needs: aCluster,
		cause: func(r *restartJob) { r.killAgent(r.hostOf(r.leader().PID)) }},
	{name: "job's leader freezes", at: []string{atWork}, effect: ends, code: 123, kills: true,
		moves: true, needs: aCluster, cause: (*restartJob).freezeLeader},
	{name: "rank 0's agent", at: []string{atWork}, effect: ends, code: 123, kills: true, moves: true,
		needs: aCluster, cause: func(r *restartJob) { r.killAgent(r.hostOf(r.agentOf(0))) }},
	{name: "etcd member", at: []string{atWork}, effect: nothing, light: true, needs: aCluster,
		cause: (*restartJob).killMember},
	{name: "etcd member freezes", at: []string{atWork}, effect: nothing, light: true, needs: aCluster,
		cause: (*restartJob).freezeMember},
	{name: "etcd member's link", at: []string{atWork}, effect: nothing, light: true, needs: aCluster,
		cause: (*restartJob).disconnectMember},
	{name: "preempted", at: []string{atWork, between}, effect: ends, code: 128 + 15, moves: true,
		cause: (*restartJob).preempt},
	{name: "SIGINT", at: []string{atWork, between}, effect: ends, code: 128 + 2,
		cause: func(r *restartJob) { r.signal(r.someAgent(), syscall.SIGINT) }},
}

func (k restartKind) ends() bool { return k.effect == ends }

// fits tells whether there can be such a fault in a setting.
func (k restartKind) fits(s restartSetting) bool {
	return k.needs == anySetting || k.needs == aSpare && s.withSpare ||
		k.needs == noSpare && !s.withSpare || k.needs == aCluster && s.etcd ||
		k.needs == aLauncher && s.under != "direct"
}

// signalRanks sends a signal to workers, at the same moment.
func (r *restartJob) signalRanks(s syscall.Signal, ranks ...int) {
	r.t.Helper()
	for i, rank := range ranks {
		if i == 0 {
			r.signal(r.workers[rank].PID, s)
		} else {
			_ = syscall.Kill(r.workers[rank].PID, s) // it may have ended because of the first
		}
	}
	r.current.ranks = ranks
}

// killStarting kills the worker that has started first, or one of those that have.
func (r *restartJob) killStarting() {
	files, _ := filepath.Glob(filepath.Join(r.records(), fmt.Sprint(r.attempt), "*"))
	text, err := os.ReadFile(files[0])
	if err != nil {
		r.t.Fatal(err)
	}
	fields := strings.Fields(string(text))
	pid, err1 := strconv.Atoi(fields[0])
	rank, err2 := strconv.Atoi(fields[2])
	if err1 != nil || err2 != nil {
		r.t.Fatalf("%s contains %q", files[0], strings.Join(fields, " "))
	}
	r.signal(pid, syscall.SIGKILL)
	r.current.ranks = []int{rank}
}

// cutBriefly disconnects a host for half a second, after which TCP needs up to another one, and waits
// until the training goes on.
func (r *restartJob) cutBriefly() {
	r.t.Helper()
	host := strconv.Itoa(r.hosts[r.random.IntN(len(r.hosts))])
	began := time.Now()
	r.cluster.hosts("cut", host)
	eventually(500*time.Millisecond, func() bool { return false })
	r.cluster.hosts("heal", host)
	r.t.Logf("node%s was disconnected for %v", host, time.Since(began).Round(time.Millisecond))
	r.ranksOf(r.attempt)
	r.awaitProgress()
}

// awaitProgress waits until the training has finished two more epochs. That is not known of torch.
func (r *restartJob) awaitProgress() {
	r.t.Helper()
	if r.torch {
		return
	}
	epoch := func() int { v, _ := loadSnapshot(r.records()); return v.Epoch }
	before := epoch()
	if !eventually(waitLimit, func() bool { return epoch() > before+1 }) {
		r.t.Fatalf("the training does not go on after epoch %d", before)
	}
}

// stopFor stops a process for a time that nobody notices, and waits until the training goes on.
func (r *restartJob) stopFor(d time.Duration, pid int) {
	r.t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		r.t.Fatal(err)
	}
	eventually(d, func() bool { return false })
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		r.t.Fatal(err)
	}
	r.awaitProgress()
}

// someAgent is an agent of a random host.
func (r *restartJob) someAgent() int { return r.agentOn(r.hosts[r.random.IntN(len(r.hosts))]) }

// agentOn is an agent on a host, as soon as there is one: a process in its network.
func (r *restartJob) agentOn(host int) (agent int) {
	r.t.Helper()
	there := func(pid int) bool { return r.hostOf(pid) == host }
	if !eventually(waitLimit, func() bool { agent = r.findAgent(there); return agent != 0 }) {
		r.t.Fatalf("there is no agent on node%d", host)
	}
	r.noteAgent(agent)
	return agent
}

// hostOf is the host in whose network a process is; 0 if it has ended.
func (r *restartJob) hostOf(pid int) int {
	r.t.Helper()
	network := func(pid string) string { n, _ := os.Readlink("/proc/" + pid + "/ns/net"); return n }
	own := network(strconv.Itoa(pid))
	for host := 1; own != "" && host <= restartHosts+1; host++ {
		first, err := os.ReadFile(filepath.Join(r.cluster.root, "hosts", strconv.Itoa(host)))
		if err != nil {
			r.t.Fatal(err)
		}
		if network(strings.TrimSpace(string(first))) == own {
			return host
		}
	}
	return 0
}

// noteAgent notes an agent that is about to be lost.
func (r *restartJob) noteAgent(pid int) {
	if r.agentsBy == nil {
		r.agentsBy = map[int]int{}
	}
	r.agentsBy[parentOf(pid)] = pid
}
