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

// A restartKind is a kind of fault of TestChaosOfRestarts.
type restartKind struct {
	name   string
	at     []string // of which one is drawn
	effect faultEffect
	code   int  // of the job, if this is its last fault
	light  bool // not in a job with torch, whose progress is not known
	kills  bool // an agent or a watchdog, so that files are left
	// moves: without a launcher agents that are lost are started again, and the job restarts, unless
	// the store is lost too.
	moves bool
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
	{name: "watchdog pauses", at: []string{atWork}, effect: nothing, light: true,
		cause: func(r *restartJob) { r.stopFor(time.Second, r.watchdogOf(r.random.IntN(r.ranks))) }},
	{name: "watchdog", at: []string{atWork}, effect: restarts, code: 123,
		cause: func(r *restartJob) { r.signal(r.watchdogOf(r.random.IntN(r.ranks)), syscall.SIGKILL) }},
	{name: "agent", at: []string{atWork, between}, effect: ends, code: 123, kills: true, moves: true,
		cause: (*restartJob).killAgent},
	{name: "SIGTERM", at: []string{atWork, between}, effect: ends, code: 128 + 15,
		cause: func(r *restartJob) { r.signal(r.someAgent(), syscall.SIGTERM) }},
}

func (k restartKind) ends() bool { return k.effect == ends }

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

// cutBriefly disconnects a host for half a second, after which TCP needs up to another one, and waits until the training goes on.
func (r *restartJob) cutBriefly() {
	r.t.Helper()
	host := strconv.Itoa(1 + r.random.IntN(3))
	began := time.Now()
	r.cluster.hosts("cut", host)
	eventually(500*time.Millisecond, func() bool { return false })
	r.cluster.hosts("heal", host)
	r.t.Logf("node%s was disconnected for %v", host, time.Since(began).Round(time.Millisecond))
	r.ranksOf(r.attempt)
	r.awaitProgress()
}

// awaitProgress waits until the training has finished two more epochs.
func (r *restartJob) awaitProgress() {
	r.t.Helper()
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

// cutForLong disconnects a host until the agents there have ended.
func (r *restartJob) cutForLong() {
	r.t.Helper()
	host := strconv.Itoa(r.current.host)
	r.cluster.hosts("cut", host)
	if r.current.effect == restarts && r.attempt < restartsPerJob {
		lost := []int{r.current.host}
		if r.current.host == storeHost {
			lost = []int{2, 3}
		}
		for _, host := range lost {
			r.commands[host-1].code()
		}
		r.cluster.hosts("heal", host)
		r.startAgain(lost...)
		return
	}
	if !eventually(waitLimit, func() bool { return len(r.agents()) == 0 }) {
		r.t.Errorf("agents run although node%s is disconnected", host)
	}
	r.cluster.hosts("heal", host)
}

// killAgent kills an agent of the fault's host. Workers may run or not.
func (r *restartJob) killAgent() {
	r.t.Helper()
	r.signal(r.agentOn(r.current.host), syscall.SIGKILL)
	if r.current.effect == restarts && r.attempt < restartsPerJob {
		r.startAgain(r.current.host)
	}
}

// startAgain starts the agents of hosts again when the others wait for them. They say which attempt
// is the next: an agent that is lost before the workers start costs no attempt.
func (r *restartJob) startAgain(hosts ...int) {
	r.t.Helper()
	waits := func() []string { return r.commands[0].linesWith("for an agent in place of ") }
	if !eventually(waitLimit, func() bool { return len(waits()) > r.waits }) {
		r.t.Fatalf("no agent waits for those of the hosts %d", hosts)
	}
	lines := waits()
	r.waits = len(lines)
	_, text, _ := strings.Cut(lines[len(lines)-1], "(restart ")
	if _, err := fmt.Sscanf(text, "%d of", &r.attempt); err != nil {
		r.t.Fatalf("%q has no number", lines)
	}
	r.lost = true
	for _, host := range hosts {
		old := r.commands[host-1]
		r.commands[host-1] = r.startWith(old.cmd.Env, old.argv...)
	}
	r.note(r.ranksOf(r.attempt))
}

// someAgent is an agent of a random host.
func (r *restartJob) someAgent() int { return r.agentOn(1 + r.random.IntN(3)) }

// agentOn is an agent on a host, as soon as there is one: a process in its network.
func (r *restartJob) agentOn(host int) (agent int) {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.cluster.root, "hosts", strconv.Itoa(host)))
	if err != nil {
		r.t.Fatal(err)
	}
	network := func(pid string) string { n, _ := os.Readlink("/proc/" + pid + "/ns/net"); return n }
	want := network(strings.TrimSpace(string(text)))
	there := func(pid int) bool { return network(strconv.Itoa(pid)) == want }
	if !eventually(waitLimit, func() bool { agent = r.findAgent(there); return agent != 0 }) {
		r.t.Fatalf("there is no agent on node%d", host)
	}
	if r.agentsBy == nil {
		r.agentsBy = map[int]int{}
	}
	r.agentsBy[parentOf(agent)] = agent
	return agent
}
